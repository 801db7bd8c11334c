#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""A small program ends without a page of the library's rare code.

The program is stopped where it exits, when it has run all destructors, and its mappings are looked at. The system maps
code in runs of pages, so that one call of a rare function takes 64 KiB.
"""

import argparse
import os
import pathlib
import signal
import sys

import check_fast_path
from check_rare_text import FILE_OFFSET, range_of

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "scripts"))

# pylint: disable=wrong-import-position
import traced


def go_on_to_exit(child):
    """Returns true if the program has come to its exit."""
    signal_number = 0
    while traced.go_on(child, signal_number):
        _, status = os.waitpid(child, 0)
        if status >> 8 == signal.SIGTRAP | traced.PTRACE_EVENT_EXIT << 8:
            return True
        if not os.WIFSTOPPED(status):
            return False
        signal_number = os.WSTOPSIG(status)
    return False


def resident(child, library, offsets):
    """Returns the resident bytes of the mappings that begin within offsets of a file, and their number."""
    bytes_of_all = 0
    count = 0
    inside = False
    with open(f"/proc/{child}/smaps", encoding="ascii") as lines:
        for line in lines:
            fields = line.split()
            if not fields[0].endswith(":"):
                inside = fields[-1] == str(library) and int(fields[2], 16) in offsets and "x" in fields[1]
                count += inside
            elif inside and fields[0] == "Rss:":
                bytes_of_all += int(fields[1]) * 1024
    return bytes_of_all, count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--probe", required=True)
    arguments = parser.parse_args()
    library = arguments.library.resolve()
    rare = range_of(library, ".text.rare", FILE_OFFSET)
    if rare is None:
        print("skipped: the linker took no part of a script")
        return check_fast_path.SKIPPED
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("TCMALLOC_", "HEAP"))}
    child = traced.start([arguments.probe], {**kept, "LD_PRELOAD": str(library)}, traced.TRACE_EXIT)
    if child is None:
        print("skipped: programs cannot be traced here")
        return check_fast_path.SKIPPED
    if not go_on_to_exit(child):
        print("the program did not come to its exit")
        return 1
    found, mappings = resident(child, library, rare)
    traced.go_on(child)
    os.waitpid(child, 0)
    print(f"{found} bytes of {mappings} mappings of rare code are resident")
    return 0 if mappings == 1 and found == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
