#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that no file names a particular machine, a registry's host, or work that was put off.

Lock files are left out: package managers write the registry's address into them. A type of the
library has one definition: with two of one name in namespace tcmalloc, the linker takes the inline
functions of either for those of both. Types of unnamed namespaces are their file's own.
"""

import collections
import re
import sys
from pathlib import Path

import repository

# Each pattern is written so that it does not match itself.
FORBIDDEN = {
    "a path of one machine": r"(?<![\w.])/[w]ork/|/tmp/[b]riefs|(?<!\w)shared/(?:[s]pec|[d]esign|[s]tyle)\b",
    "a registry's host": r"deb[.]debian[.]org|pypi[.]org|pythonhosted[.]org|crates[.]io|"
    r"proxy[.]golang[.]org|sum[.]golang[.]org|registry[.]npmjs[.]org",
    "a tool of one workplace": r"\bfarm-(?:bench|studio)\b",
    "work put off": r"\b(?:TO[D]O|FIX[M]E|XX[X])\b",
}
LOCK_FILES = {"Cargo.lock", "go.sum"}
# At the beginning of a line, with attributes before the name.
TYPE = re.compile(
    r"^(?:class|struct|union|enum(?: class)?)(?: \[\[\w+\]\]| alignas\(.*?\)| TCMALLOC_\w+(?:\(.*?\))?)*"
    r" (\w+)(?: final)?(?: : [^;]*)? \{"
)


def check_text(path: Path, text: str) -> list[str]:
    complaints = []
    for number, line in enumerate(text.splitlines(), start=1):
        for reason, pattern in FORBIDDEN.items():
            match = re.search(pattern, line)
            if match:
                complaints.append(f"{path}:{number}: {reason}: {match[0]}")
    return complaints


def types_in(text: str) -> list[tuple[int, str]]:
    """The line and the name of each type that is defined in no unnamed namespace."""
    found = []
    unnamed = False
    for number, line in enumerate(text.splitlines(), start=1):
        if line in ("namespace {", "}  // namespace"):
            unnamed = line == "namespace {"
        match = TYPE.match(line)
        if match and not unnamed:
            found.append((number, match[1]))
    return found


def check_types(types: dict[str, list[str]]) -> list[str]:
    return [
        f"{places[1]}: {name} is defined at {places[0]}, too"
        for name, places in types.items()
        if len(places) > 1
    ]


def check(root: Path) -> list[str]:
    complaints = []
    types = collections.defaultdict(list)
    for path in repository.files(root):
        if path.name in LOCK_FILES:
            continue
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        complaints += check_text(path, text)
        if path.parts[0] == "src" and path.suffix in (".h", ".cc"):
            for number, name in types_in(text):
                types[name].append(f"{path}:{number}")
    return complaints + check_types(types)


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
