#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs a program with two mistakes under valgrind, with each library.

valgrind puts an allocator of its own in the place of the library's. To that end it reads the library's
symbols, and keeps silent where it cannot: then it finds no mistake. The libraries are read as they are
installed, without debug information, of which valgrind cannot read all that compilers write.
"""

import argparse
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
EXPECTED = (
    "Invalid read of size 1",
    "3 bytes inside a block of size 10 free'd",
    "Invalid write of size 1",
    "0 bytes after a block of size 20 alloc'd",
)


def strip_into(folder, library):
    stripped = pathlib.Path(folder) / library.name
    subprocess.run(["strip", "--strip-debug", "-o", stripped, library], check=True, timeout=60)
    return stripped


def report_of(program, library):
    """What valgrind says of the program; the report begins each line with the number of the process."""
    variables = dict(os.environ, LD_PRELOAD=str(library))
    result = subprocess.run(["valgrind", str(program)], env=variables, text=True, errors="replace",
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=120, check=False)
    return result.stdout


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--program", required=True, type=pathlib.Path)
    parser.add_argument("libraries", nargs="+", type=pathlib.Path)
    arguments = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("valgrind is not installed")
        return SKIPPED
    failures = []
    with tempfile.TemporaryDirectory(prefix="tcm_valgrind_") as folder:
        for library in arguments.libraries:
            report = report_of(arguments.program, strip_into(folder, library))
            missing = [line for line in EXPECTED if line not in report]
            if missing:
                failures.append(f"{library.name}: not said: {missing}\n{report}")
    print("\n".join(failures) or f"{len(arguments.libraries)} libraries")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
