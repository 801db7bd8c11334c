#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of a step by which realloc grows a block, with callgrind, and bounds them.

The probe runs N and 2N rounds, so that start-up cancels out. The copies of the contents do not count:
they depend on the processor, for valgrind takes a string instruction for as many as it moves bytes.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import check_pair

# The step and the size at which a round ends, and how many rounds.
GROWTHS = {(16, 1024): 500, (16, 4096): 100, (32, 4096): 200, (16, 65536): 10,
           (1024, 262144): 100, (4096, 16 << 20): 2}
# A realloc of null and a free in each round.
FIRST = (64, 64)
FIRST_ROUNDS = 20000
COPIES = re.compile(r"mem(cpy|move|pcpy)")


def instructions_in(profile):
    """The sum of all functions of a profile of callgrind but those that copy."""
    names = {}
    counted = called = False
    total = 0
    for line in profile.splitlines():
        function = re.match(r"fn=(\(\d+\))(?: (.*))?$", line)
        defined = re.match(r"cfn=(\(\d+\)) (.*)$", line)
        if defined:
            names[defined.group(1)] = defined.group(2)
        if function:
            names.setdefault(function.group(1), function.group(2))
            counted = not COPIES.search(names[function.group(1)])
        elif line.startswith("calls="):
            called = True
        elif re.match(r"[-+*\d]", line):
            # The line after a call is of the function that was called, which is counted by itself.
            if counted and not called:
                total += int(line.split()[1])
            called = False
    return total


def count_instructions(probe, library, rounds, step, most):
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    variables["LD_PRELOAD"] = str(library)
    with tempfile.NamedTemporaryFile(prefix="tcm_callgrind_") as profile:
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={profile.name}",
             str(probe), str(rounds), str(step), str(most)],
            check=True, env=variables, timeout=300, stderr=subprocess.DEVNULL)
        return instructions_in(pathlib.Path(profile.name).read_text())


def instructions_per_step(probe, library, step, most, rounds):
    once = count_instructions(probe, library, rounds, step, most)
    twice = count_instructions(probe, library, 2 * rounds, step, most)
    return (twice - once) / (rounds * (most // step))


def check_growths(probe, library, limit, first_limit):
    """Returns whether no step takes more instructions than `limit`, nor a block of one step more
    than `first_limit`."""
    limits = {growth: limit for growth in GROWTHS} | {FIRST: first_limit}
    steps = {growth: instructions_per_step(probe, library, *growth, rounds)
             for growth, rounds in (GROWTHS | {FIRST: FIRST_ROUNDS}).items()}
    for (step, most), instructions in steps.items():
        print(f"realloc by {step} up to {most} bytes: {instructions:.1f} instructions a step, "
              f"allowed are {limits[step, most]:g}")
    return all(instructions <= limits[growth] for growth, instructions in steps.items())


def main():
    parser = check_pair.probe_parser(__doc__)
    parser.add_argument("--limit", type=float, default=80, help="instructions per step")
    parser.add_argument("--first-limit", type=float, default=66,
                        help="instructions of a realloc of null, a free and the loop around them")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return check_pair.SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_growth_") as folder:
        probe, library = (check_pair.strip_into(folder, path)
                          for path in (arguments.probe, arguments.library))
        return 0 if check_growths(probe, library, arguments.limit, arguments.first_limit) else 1


if __name__ == "__main__":
    sys.exit(main())
