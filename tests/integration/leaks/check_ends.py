#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that a program is checked once, however it ends, and that it ends."""

import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests/leak_ends"
FOUND = "detected leaks of 100 bytes in 1 objects"
REFUSED = "was not made"

# The way to end, status, line on stderr.
CASES = [
    ("return", 1, FOUND),
    ("thread", 1, FOUND),
    ("many_threads", 1, "detected leaks of"),
    ("first_thread", 1, FOUND),
    ("handler_of_exit", 1, FOUND),
    ("destructor", 1, FOUND),
    ("during_check", 3, REFUSED),
    ("child", 1, FOUND),
    ("no_files", 0, REFUSED),
    ("no_file_size", 1, FOUND),
    ("at_once", 3, None),
    ("quick", 4, None),
    ("replaced", 0, None),
]


def complaint(way, status, line, folder):
    result = subprocess.run([PROGRAM, way], env={**os.environ, "HEAPCHECK": "normal",
                                                 "HEAP_CHECK_DUMP_DIRECTORY": folder},
                            capture_output=True, text=True, timeout=60)
    lines = [text for text in result.stderr.splitlines() if "eak check" in text]
    expected = len(lines) == 1 and line in lines[0] if line else not result.stderr
    if result.returncode == status and expected:
        return None
    return f"{way}: status {result.returncode}, expected {status}\n{result.stderr}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        complaints = [complaint(*case, folder) for case in CASES]
    complaints = [text for text in complaints if text]
    print("\n".join(complaints) or f"{len(CASES)} ways to end")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
