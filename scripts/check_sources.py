#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that each source names its licence at the top and each header has the right guard.

Also: no line of a comment in src/ and include/ begins with a word that hides the subject.
"""

import re
import sys
from pathlib import Path

import repository

LICENCE = "Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0"
LICENSED_SUFFIXES = {".h", ".cc", ".c", ".S", ".go", ".py", ".sh", ".cmake", ".rs"}
LICENSED_NAMES = {"run", "test"}
# A comment begins with a verb or with the noun that is meant.
VAGUE = re.compile(r"^\s*(?://+|/?\*+)\s*(What|Whether|Of these|Those|The same|Likewise)\b")


def guard_of(path: Path) -> str:
    """TCMALLOC_<PATH>_H_, the path as an #include line writes it: from src/ on, where it is there."""
    parts = path.parts[1:] if path.parts[0] == "src" else path.parts
    return re.sub(r"\W", "_", f"tcmalloc_{'_'.join(parts)}_").upper()


def check_licence(path: Path, lines: list[str]) -> list[str]:
    first = lines[1:2] if lines and lines[0].startswith("#!") else lines[:1]
    if first and LICENCE in first[0]:
        return []
    return [f"{path}:1: the licence line is missing"]


def check_guard(path: Path, text: str) -> list[str]:
    guard = guard_of(path)
    if re.search(rf"^#ifndef {guard}\n#define {guard}\n", text, re.MULTILINE):
        return []
    return [f"{path}: the include guard is not {guard}"]


def check_openings(path: Path, lines: list[str]) -> list[str]:
    return [
        f'{path}:{number}: a comment begins with "{match[1]}"'
        for number, line in enumerate(lines, 1)
        if (match := VAGUE.match(line))
    ]


def check(root: Path) -> list[str]:
    complaints = []
    for path in repository.files(root):
        if path.suffix not in LICENSED_SUFFIXES and path.name not in LICENSED_NAMES:
            continue
        text = (root / path).read_text()
        complaints += check_licence(path, text.splitlines())
        if path.suffix == ".h" and path.parts[0] != "include":
            complaints += check_guard(path, text)
        if path.parts[0] in {"src", "include"}:
            complaints += check_openings(path, text.splitlines())
    return complaints


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
