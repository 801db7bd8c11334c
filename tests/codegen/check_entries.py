#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of entry points that are not malloc's own with callgrind and bounds them.

Programs free null, ask for aligned and for zeroed blocks, and let blocks grow as often as others
call malloc. Each figure has the calls and the loop around them, and the free of the block.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

import check_pair

LIMITS = {
    "free(NULL)": 36,
    "posix_memalign(16, 100)": 130,
    "posix_memalign(64, 100)": 142,
    "posix_memalign(64, 2000)": 147,
    "calloc(1, 100)": 88,
    "realloc(malloc(50), 100)": 210,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probe", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return check_pair.SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_entries_") as folder:
        probe, library = (check_pair.strip_into(folder, path)
                          for path in (arguments.probe, arguments.library))
        calls = {entry: check_pair.instructions_per_round(probe, entry, library)
                 for entry in LIMITS}
    for entry, instructions in calls.items():
        print(f"{entry}: {instructions:.2f} instructions, allowed are {LIMITS[entry]:g}")
    return 0 if all(instructions <= LIMITS[entry] for entry, instructions in calls.items()) else 1


if __name__ == "__main__":
    sys.exit(main())
