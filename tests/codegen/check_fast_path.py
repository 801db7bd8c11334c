#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Pins the instructions of the fast paths and what may not be among them.

Disassembles the library and walks each entry point from its first instruction to a return, taking
the not-taken side of every conditional branch. A side is given up, and the branch taken, where it
leaves the function, calls, uses an atomic instruction or enters the kernel, or returns without
having stored anything, as free(nullptr) does. The number of instructions must be that of
golden/COMPILER.json, and the first one must begin a cache line.
"""

import argparse
import dataclasses
import json
import pathlib
import re
import subprocess
import sys

ENTRY_POINTS = {
    "malloc": "malloc",
    "free": "free",
    "operator new": "_Znwm",
    "operator delete": "_ZdlPv",
    "sized operator delete": "_ZdlPvm",
}
MAX_INSTRUCTIONS = 60
CACHE_LINE = 64
SKIPPED = 77

PREFIXES = {"lock", "rep", "repz", "repnz", "bnd", "notrack", "data16", "cs", "ds", "es", "ss",
            "xacquire", "xrelease"}
# Operands that store: the last one of the AT&T form is in memory.
READS_ONLY = re.compile(r"^(cmp|test|bt[lqw]?$|ucomis|comis|prefetch|nop|push|lea|ptest)")
FORBIDDEN = re.compile(r"^(call|syscall|sysenter|int$|int3|hlt|ud2|mfence|cpuid|rdtsc)")


@dataclasses.dataclass
class Instruction:
    address: int
    locked: bool
    name: str
    operands: str

    @property
    def is_jump(self):
        return self.name in ("jmp", "jmpq")

    @property
    def is_branch(self):
        return self.name.startswith("j") and not self.is_jump

    @property
    def is_return(self):
        return self.name in ("ret", "retq")

    @property
    def target(self):
        """The address that a direct jump goes to."""
        match = re.match(r"([0-9a-f]+)\s*$", self.operands)
        return int(match.group(1), 16) if match else None

    @property
    def stores(self):
        last = re.split(r",(?![^(]*\))", self.operands)[-1].strip()
        return last.endswith(")") and not READS_ONLY.match(self.name)

    @property
    def is_forbidden(self):
        # xchg with memory is locked without saying so.
        exchange = self.name.startswith("xchg") and "(" in self.operands
        return self.locked or exchange or bool(FORBIDDEN.match(self.name))

    def __str__(self):
        return f"{self.address:x}: {'lock ' if self.locked else ''}{self.name} {self.operands}".strip()


def parse_instruction(line):
    match = re.match(r"^\s*([0-9a-f]+):\s+(.*)$", line)
    if not match:
        return None
    words = match.group(2).split("<")[0].split("#")[0].split()
    prefixes = []
    while len(words) > 1 and words[0] in PREFIXES:
        prefixes.append(words.pop(0))
    if not words:
        return None
    return Instruction(int(match.group(1), 16), "lock" in prefixes, words[0], " ".join(words[1:]))


def disassemble(library):
    """All instructions by address, and for each the address of the next one."""
    listing = subprocess.run(["objdump", "-d", "--no-show-raw-insn", str(library)], check=True,
                             capture_output=True, text=True).stdout
    instructions = [instruction for line in listing.splitlines()
                    if (instruction := parse_instruction(line))]
    by_address = {instruction.address: instruction for instruction in instructions}
    following = {first.address: second.address
                 for first, second in zip(instructions, instructions[1:])}
    return by_address, following


def functions_of(library):
    """Address and size of every function by its name."""
    listing = subprocess.run(["nm", "-S", "--defined-only", str(library)], check=True,
                             capture_output=True, text=True).stdout
    functions = {}
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 4 and fields[2] in "TtWwi":
            functions[fields[3]] = (int(fields[0], 16), int(fields[1], 16))
    return functions


class Walk:
    """The search for the straight line of one function."""

    def __init__(self, code, start, sizes):
        self.by_address, self.following = code
        self.start = self.forwarded(start, sizes)
        self.end = self.start + sizes[self.start]
        # Why a side was given up, for the report of a failure.
        self.obstacles = []

    def forwarded(self, start, sizes):
        """Where the work is done of a function that is nothing but a jump to another one."""
        first = self.by_address[start]
        return first.target if first.is_jump and first.target in sizes else start

    def run(self):
        return self.continue_from(self.start, [])

    def give_up(self, reason):
        self.obstacles.append(reason)
        return None

    def continue_from(self, address, path):
        """Returns the path extended from `address` to a return, or None."""
        path = list(path)
        while True:
            if address is None or not self.start <= address < self.end:
                return self.give_up(f"leaves the function for {address or 0:x}")
            instruction = self.by_address[address]
            path.append(instruction)
            if len(path) > MAX_INSTRUCTIONS:
                return self.give_up(f"over {MAX_INSTRUCTIONS} instructions")
            if instruction.is_forbidden:
                return self.give_up(f"forbidden: {instruction}")
            if instruction.is_return:
                if any(step.stores for step in path):
                    return path
                return self.give_up(f"nothing stored before {instruction}")
            if instruction.is_branch:
                fallen_through = self.continue_from(self.following[address], path)
                if fallen_through is not None:
                    return fallen_through
                address = instruction.target
            elif instruction.is_jump:
                address = instruction.target
            else:
                address = self.following.get(address)


def walk_all(library, show):
    """Instruction counts by entry point, and the problems found."""
    code = disassemble(library)
    functions = functions_of(library)
    sizes = dict(functions.values())
    counts, problems = {}, []
    for name, symbol in ENTRY_POINTS.items():
        if symbol not in functions:
            problems.append(f"{name}: {symbol} is not exported")
            continue
        if functions[symbol][0] % CACHE_LINE:
            problems.append(f"{name}: {symbol} begins at {functions[symbol][0]:x}, within a cache line")
        walk = Walk(code, functions[symbol][0], sizes)
        path = walk.run()
        if path is None:
            problems.append(f"{name}: no straight line to a return:\n  " +
                            "\n  ".join(walk.obstacles))
            continue
        counts[name] = len(path) + (walk.start != functions[symbol][0])
        print(f"{name:<24}{counts[name]:>4} instructions")
        if show:
            print("".join(f"    {step}\n" for step in path), end="")
    return counts, problems


def compare(counts, golden_file):
    golden = json.loads(golden_file.read_text())
    return [f"{name}: {counts.get(name)} instructions, {golden.get(name)} in {golden_file.name}; "
            "where the change is meant, run this script with --update"
            for name in sorted(golden.keys() | counts.keys())
            if counts.get(name) != golden.get(name)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--compiler", required=True, help="names the golden file: gcc-12, clang-19")
    parser.add_argument("--update", action="store_true", help="rewrite the golden file")
    parser.add_argument("--show", action="store_true", help="print the instructions")
    arguments = parser.parse_args()
    header = subprocess.run(["objdump", "-f", str(arguments.library)], check=True,
                            capture_output=True, text=True).stdout
    if "x86-64" not in header:
        print("skipped: the walk knows x86-64 only")
        return SKIPPED
    counts, problems = walk_all(arguments.library, arguments.show)
    golden_file = pathlib.Path(__file__).parent / "golden" / f"{arguments.compiler}.json"
    if arguments.update and not problems:
        golden_file.write_text(json.dumps(counts, indent=2) + "\n")
    elif golden_file.exists():
        problems += compare(counts, golden_file)
    elif not problems:
        print(f"skipped: no golden file for {arguments.compiler}; --update writes it")
        return SKIPPED
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
