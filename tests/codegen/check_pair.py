#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of a pair of malloc and free with callgrind and bounds them.

The probe runs N and 2N pairs, so that start-up cancels out, with the library and with functions
that only return, so that the loop cancels out. Both are measured without debug information, of which
valgrind cannot read all that compilers write.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

PAIRS = 50_000
# Sizes, and how many instructions more than the limit each may take: malloc looks those of more than
# a kibibyte up in a function of its own, and what the thread does each so many bytes comes often.
SIZES = {16: 0, 100: 0, 2000: 16}
# The two return instructions of the stubs.
STUB_INSTRUCTIONS = 2
# Bytes between two samples, which is more than the probe allocates: chance decides how many of them
# fall into a run, and the first one reads the tables of the program.
SAMPLE_PERIOD = 1 << 40
SKIPPED = 77


def count_instructions(probe, pairs, size, library):
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    variables["LD_PRELOAD"] = str(library)
    variables["TCMALLOC_SAMPLE_PARAMETER"] = str(SAMPLE_PERIOD)
    with tempfile.NamedTemporaryFile(prefix="tcm_callgrind_") as profile:
        subprocess.run(
            ["valgrind", "-q", "--tool=callgrind", f"--callgrind-out-file={profile.name}",
             str(probe), str(pairs), str(size)],
            check=True, env=variables, timeout=300)
        summary = re.search(r"^(?:summary|totals): (\d+)", pathlib.Path(profile.name).read_text(),
                            re.MULTILINE)
    return int(summary.group(1))


def strip_into(folder, path):
    """Without debug information, of which valgrind cannot read all that compilers write."""
    stripped = pathlib.Path(folder) / path.name
    subprocess.run(["strip", "--strip-debug", "-o", stripped, path], check=True, timeout=60)
    return stripped


def instructions_per_round(probe, size, library):
    once = count_instructions(probe, PAIRS, size, library)
    twice = count_instructions(probe, 2 * PAIRS, size, library)
    return (twice - once) / PAIRS


def probe_parser(description):
    parser = argparse.ArgumentParser(description=description.splitlines()[0])
    parser.add_argument("--probe", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    return parser


def check_rounds(probe, library, limits):
    """The exit status for a probe of which no round may take more instructions than its limit.

    `limits` maps the probe's second argument to (name of the round, limit).
    """
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_rounds_") as folder:
        probe, library = (strip_into(folder, path) for path in (probe, library))
        rounds = {argument: instructions_per_round(probe, argument, library)
                  for argument in limits}
    for argument, instructions in rounds.items():
        name, limit = limits[argument]
        print(f"{name}: {instructions:.2f} instructions, allowed are {limit:g}")
    return 0 if all(instructions <= limits[argument][1]
                    for argument, instructions in rounds.items()) else 1


def check_pairs(probe, library, limit):
    """Whether no pair takes more instructions than `limit` and what its size may add."""
    loop = instructions_per_round(probe, "stub", library)
    pairs = {size: instructions_per_round(probe, size, library) + STUB_INSTRUCTIONS - loop
             for size in SIZES}
    for size, pair in pairs.items():
        print(f"malloc({size}) and free: {pair:.2f} instructions, "
              f"allowed are {limit + SIZES[size]:g}")
    # The few pairs that miss add well under half an instruction per pair.
    return all(round(pair) <= limit + SIZES[size] for size, pair in pairs.items())


def check_against(probe, library, minimal, more):
    """Whether no pair takes more instructions than with `minimal` and `more`."""
    passed = True
    for size in SIZES:
        pair, least = (instructions_per_round(probe, size, each) for each in (library, minimal))
        allowed = more + 0.75
        print(f"malloc({size}) and free: {pair - least:+.2f} instructions, "
              f"allowed are {allowed:+.2f}")
        passed = passed and pair - least <= allowed
    return passed


def main():
    parser = probe_parser(__doc__)
    parser.add_argument("--limit", type=float, default=41, help="instructions per pair")
    parser.add_argument("--minimal", type=pathlib.Path,
                        help="compare with this library instead of the limit")
    parser.add_argument("--more", type=float, default=0, help="than that of --minimal")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_pair_") as folder:
        probe, library = (strip_into(folder, path)
                          for path in (arguments.probe, arguments.library))
        if arguments.minimal:
            minimal = strip_into(folder, arguments.minimal)
            return 0 if check_against(probe, library, minimal, arguments.more) else 1
        return 0 if check_pairs(probe, library, arguments.limit) else 1


if __name__ == "__main__":
    sys.exit(main())
