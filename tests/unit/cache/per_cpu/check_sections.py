#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks the object file of the restartable sequences, of either architecture.

Each routine has a descriptor as the kernel wants it: aligned, without flags, its section inside the
routine and its abort handler outside of the section, behind the signature. No section calls anything
or enters the kernel, and nothing is a locked instruction. The instructions from the entry of
allocate and deallocate to their return, when they succeed, are pinned.

With --assemble the object is made from a source first, by clang for aarch64; where that cannot be
done, the test is skipped.
"""

import argparse
import dataclasses
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
CLANGS = ["clang++-19", "clang-19", "clang"]
DESCRIPTOR = struct.Struct("<IIQQQ")
OPERATIONS = ["allocate", "malloc", "deallocate", "pop", "pop_counted", "push", "pop_batch",
              "push_batch"]
FIELDS = ["mm_cid", "cpu_id"]

X86_64, AARCH64 = 62, 183  # e_machine
ABSOLUTE_RELOCATION = {X86_64: 1, AARCH64: 257}
# Bytes before the handler: on x86-64 the signature is the operand of an undefined instruction.
SIGNATURE = {X86_64: b"\x0f\xb9\x3d\x53\x30\x05\x53", AARCH64: b"\x00\xbc\x28\xd4"}
INSTRUCTIONS = {
    X86_64: {"allocate": 17, "malloc": 17, "deallocate": 22},
    AARCH64: {"allocate": 25, "malloc": 25, "deallocate": 26},
}
HIDDEN = 2
# Instructions of aarch64 by mask and value: bl, blr, svc; loads and stores that are exclusive or
# atomic.
AARCH64_CALLS = [(0xFC000000, 0x94000000), (0xFFFFFC1F, 0xD63F0000), (0xFFE0001F, 0xD4000001)]
AARCH64_LOCKED = [(0x3F000000, 0x08000000), (0x3F200C00, 0x38200000)]
AARCH64_RETURN = 0xD65F03C0


@dataclasses.dataclass
class Symbol:
    value: int
    size: int
    section: int
    visibility: int


class Object:
    """As much of a relocatable ELF file as is needed here."""

    def __init__(self, path):
        self.bytes = path.read_bytes()
        self.machine = struct.unpack_from("<H", self.bytes, 18)[0]
        offset = struct.unpack_from("<Q", self.bytes, 40)[0]
        count, names = struct.unpack_from("<HH", self.bytes, 60)
        headers = [struct.unpack_from("<IIQQQQIIQQ", self.bytes, offset + 64 * i) for i in range(count)]
        self.headers = headers
        self.names = [self._string(headers[names], header[0]) for header in headers]
        table = headers[self.names.index(".symtab")]
        self._entries = [
            struct.unpack_from("<IBBHQQ", self.bytes, table[4] + 24 * i) for i in range(table[5] // 24)
        ]
        self.symbols = {
            self._string(headers[table[6]], name): Symbol(value, size, section, other & 3)
            for name, _, other, section, value, size in self._entries
        }

    def _string(self, table, offset):
        start = table[4] + offset
        return self.bytes[start : self.bytes.index(b"\0", start)].decode()

    def content(self, name):
        header = self.headers[self.names.index(name)]
        return self.bytes[header[4] : header[4] + header[5]]

    def alignment(self, name):
        return self.headers[self.names.index(name)][8]

    def relocations(self, name):
        """Offset in the section to (type, section of the target, offset of the target in it)."""
        header = self.headers[self.names.index(".rela" + name)]
        found = {}
        for i in range(header[5] // 24):
            offset, info, addend = struct.unpack_from("<QQq", self.bytes, header[4] + 24 * i)
            _, _, _, section, value, _ = self._entries[info >> 32]
            found[offset] = (info & 0xFFFFFFFF, self.names[section], value + addend)
        return found


def x86_64_instructions(path):
    """(address, text) of every instruction of .text."""
    listing = subprocess.run(
        ["objdump", "-d", "-j", ".text", "--no-show-raw-insn", str(path)],
        capture_output=True, text=True, check=True).stdout
    return [(int(address, 16), text.strip())
            for address, text in re.findall(r"^\s*([0-9a-f]+):\t(.*)$", listing, re.MULTILINE)]


def aarch64_instructions(code):
    instructions = []
    for address in range(0, len(code), 4):
        word = struct.unpack_from("<I", code, address)[0]
        text = f"{word:08x}"
        if any(word & mask == value for mask, value in AARCH64_CALLS):
            text = "call"
        elif any(word & mask == value for mask, value in AARCH64_LOCKED):
            text = "lock"
        elif word == AARCH64_RETURN:
            text = "ret"
        instructions.append((address, text))
    return instructions


def check_descriptor(elf, name, text):
    """Complaints, and the section as (start, end)."""
    routine, end, symbol = (elf.symbols.get(name + suffix) for suffix in ("", "_end", "_section"))
    if None in (routine, end, symbol):
        return [f"{name}: symbols are missing"], None
    complaints = []

    def require(condition, message):
        if not condition:
            complaints.append(f"{name}: {message}")

    where = elf.names[symbol.section]
    data = elf.content(where)
    version, flags, _, length, _ = DESCRIPTOR.unpack_from(data, symbol.value)
    relocations = elf.relocations(where)
    pointers = [relocations.get(symbol.value + offset, (None, None, 0)) for offset in (8, 24)]
    (_, _, start), (_, _, abort) = pointers

    require(all(s.visibility == HIDDEN for s in (routine, end, symbol)), "a symbol is not hidden")
    require(where == ".data.rel.ro", f"the descriptor lies in {where}")
    require(symbol.size == DESCRIPTOR.size, "the descriptor has the wrong size")
    require(symbol.value % 32 == 0 and elf.alignment(where) % 32 == 0, "the descriptor is not aligned")
    require((version, flags) == (0, 0), "the descriptor has a version or flags")
    require(all(p[:2] == (ABSOLUTE_RELOCATION[elf.machine], ".text") for p in pointers),
            "the descriptor does not point into .text")
    require(length > 0 and routine.value <= start and start + length <= end.value,
            "the section is not inside the routine")
    require(routine.value <= abort < end.value, "the abort handler is not inside the routine")
    require(not start <= abort < start + length, "the abort handler is inside the section")
    signature = SIGNATURE[elf.machine]
    require(text[abort - len(signature) : abort] == signature, "no signature before the abort handler")
    return complaints, (start, start + length)


def check_instructions(name, section, instructions):
    addresses = {address for address, _ in instructions}
    complaints = [f"{name}: {edge:#x} is inside an instruction" for edge in section if edge not in addresses]
    for address, text in instructions:
        if section[0] <= address < section[1] and re.match(r"call|syscall|int\b|ret", text):
            complaints.append(f"{name}: {text} in the section")
    return complaints


def count_to_return(routine, instructions):
    texts = [text for address, text in instructions if address >= routine.value]
    return 1 + next(i for i, text in enumerate(texts) if text.startswith("ret"))


def check(path):
    elf = Object(path)
    text = elf.content(".text")
    instructions = x86_64_instructions(path) if elf.machine == X86_64 else aarch64_instructions(text)
    complaints = [f"{address:#x}: {text}" for address, text in instructions if text.startswith("lock")]
    for operation in OPERATIONS:
        for field in FIELDS:
            name = f"tcmalloc_{operation}_by_{field}"
            found, section = check_descriptor(elf, name, text)
            complaints += found
            if section is None:
                continue
            complaints += check_instructions(name, section, instructions)
            expected = INSTRUCTIONS[elf.machine].get(operation)
            count = count_to_return(elf.symbols[name], instructions)
            print(f"{name}: {count} instructions")
            if expected is not None and count != expected:
                complaints.append(f"{name}: {count} instructions, not {expected}")
    return complaints


def assemble(source, include, page_shift, target):
    """Whether it could be done; a source that clang refuses is a fault."""
    clang = next((name for name in CLANGS if shutil.which(name)), None)
    if clang is None:
        return False
    command = [clang, "--target=aarch64-linux-gnu", "-c"]
    probe = subprocess.run(command + ["-x", "assembler", os.devnull, "-o", str(target)],
                           capture_output=True, check=False)
    if probe.returncode != 0:
        return False
    subprocess.run(command + [f"-DTCMALLOC_PAGE_SHIFT={page_shift}", "-I", include, source,
                              "-o", str(target)], check=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--object", type=pathlib.Path)
    parser.add_argument("--assemble", metavar="SOURCE")
    parser.add_argument("--include", default=".")
    parser.add_argument("--page-shift", type=int, default=13)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.object
        if arguments.assemble:
            path = pathlib.Path(folder) / "sections.o"
            if not assemble(arguments.assemble, arguments.include, arguments.page_shift, path):
                print("skipped: no clang that assembles for aarch64")
                return SKIPPED
        if path is not None and not arguments.assemble and not shutil.which("objdump"):
            print("skipped: no objdump")
            return SKIPPED
        complaints = check(path)
    for complaint in complaints:
        print(complaint)
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
