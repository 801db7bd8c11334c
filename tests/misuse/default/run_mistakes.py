#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Makes mistakes under a library and compares what it notices with outcomes.txt.

Each line of that file names a class and the sizes for which every front end and page heap notices
it. A mistake is noticed if the process ends by abort with one message, or by a fault of its own.
What is not promised may have any outcome but a hang.
"""

import argparse
import os
import pathlib
import signal
import subprocess
import sys

SECONDS = 60
FAULTS = {-signal.SIGSEGV, -signal.SIGBUS}


def read_outcomes(path):
    outcomes = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, sizes = (field.strip() for field in line.split("|"))
            outcomes[name] = sizes.split()
    return outcomes


def run(program, library, name, size):
    environment = dict(os.environ, LD_PRELOAD=str(library))
    result = subprocess.run([program, name, size], env=environment, capture_output=True,
                            text=True, errors="replace", timeout=SECONDS, check=False)
    return result.returncode, result.stderr


def is_noticed(status, errors):
    if status == -signal.SIGABRT:
        return errors.startswith("tcmalloc: ") and errors.count("tcmalloc: ") == 1
    return status in FAULTS


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--survey", action="store_true", help="prints what is noticed instead")
    arguments = parser.parse_args()
    outcomes = read_outcomes(pathlib.Path(__file__).with_name("outcomes.txt"))
    listing = subprocess.run([arguments.program, "--list"], check=True, capture_output=True,
                             text=True, timeout=SECONDS).stdout
    cases = [line.split() for line in listing.splitlines()]
    failures = []
    for name, size in cases:
        status, errors = run(arguments.program, arguments.library, name, size)
        noticed = is_noticed(status, errors)
        if arguments.survey:
            print(name, size, "noticed" if noticed else status, errors.split("\n")[0], sep="\t")
        elif size in outcomes[name] and not noticed:
            failures.append(f"{name} {size}: status {status}, {errors.strip()!r}")
    print("\n".join(failures) or f"{len(cases)} mistakes, as promised")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
