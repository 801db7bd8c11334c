#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the instructions of malloc_usable_size with callgrind and bounds them.

Programs that count their own memory ask for every block that they get and free. The loop around the
call counts as well.
"""

import argparse
import pathlib
import shutil
import sys
import tempfile

import check_pair

SIZES = (16, 100, 2000, 100_000)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--probe", type=pathlib.Path, required=True)
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=float, default=52, help="instructions per call")
    arguments = parser.parse_args()
    if not shutil.which("valgrind"):
        print("skipped: valgrind is not installed")
        return check_pair.SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_usable_size_") as folder:
        probe, library = (check_pair.strip_into(folder, path)
                          for path in (arguments.probe, arguments.library))
        calls = {size: check_pair.instructions_per_round(probe, size, library) for size in SIZES}
    for size, instructions in calls.items():
        print(f"malloc_usable_size of {size} bytes: {instructions:.2f} instructions, "
              f"allowed are {arguments.limit:g}")
    return 0 if all(instructions <= arguments.limit for instructions in calls.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
