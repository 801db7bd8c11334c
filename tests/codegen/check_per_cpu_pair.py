#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Bounds the instructions of a pair of malloc and free that the caches of CPUs serve.

They cannot be counted by running: valgrind knows no restartable sequences, and a debugger aborts
them. So the entry points are disassembled and followed along the branch that a thread without lists
takes, its first one, to the indirect jump into a section, and the sections along the not-taken side
of every branch to their return.
"""

import argparse
import pathlib
import subprocess
import sys

import check_fast_path

PAIR = {"malloc": "tcmalloc_malloc_by_mm_cid", "free": "tcmalloc_deallocate_by_mm_cid"}


def to_section(code, start, sizes):
    """The instructions of an entry point up to its jump into a section."""
    walk = check_fast_path.Walk(code, start, sizes)
    by_address, following = code
    address, path, branched = walk.start, [], False
    while len(path) < check_fast_path.MAX_INSTRUCTIONS:
        instruction = by_address[address]
        path.append(instruction)
        if instruction.is_jump and instruction.target is None:
            return path
        if instruction.is_jump or (instruction.is_branch and not branched):
            branched = branched or instruction.is_branch
            address = instruction.target
        else:
            address = following[address]
    raise SystemExit(f"no indirect jump on the way from {start:x}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--limit", type=int, default=51, help="instructions in a pair")
    parser.add_argument("--show", action="store_true", help="print the instructions")
    arguments = parser.parse_args()
    header = subprocess.run(["objdump", "-f", str(arguments.library)], check=True,
                            capture_output=True, text=True).stdout
    if "x86-64" not in header:
        print("skipped: the walk knows x86-64 only")
        return check_fast_path.SKIPPED
    code = check_fast_path.disassemble(arguments.library)
    functions = check_fast_path.functions_of(arguments.library)
    sizes = dict(functions.values())
    total = 0
    for entry, section in PAIR.items():
        path = to_section(code, functions[entry][0], sizes)
        inside = check_fast_path.Walk(code, functions[section][0], sizes).run()
        if inside is None:
            print(f"{section}: no straight line to a return")
            return 1
        print(f"{entry}: {len(path)} instructions and {len(inside)} in its section")
        if arguments.show:
            print("".join(f"    {step}\n" for step in path + inside), end="")
        total += len(path) + len(inside)
    print(f"pair: {total} instructions, allowed are {arguments.limit}")
    return 0 if total <= arguments.limit else 1


if __name__ == "__main__":
    sys.exit(main())
