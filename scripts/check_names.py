#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that no file names a particular machine, a registry's host, or work that was put off.

Lock files are left out: package managers write the registry's address into them.
"""

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


def check_text(path: Path, text: str) -> list[str]:
    complaints = []
    for number, line in enumerate(text.splitlines(), start=1):
        for reason, pattern in FORBIDDEN.items():
            match = re.search(pattern, line)
            if match:
                complaints.append(f"{path}:{number}: {reason}: {match[0]}")
    return complaints


def check(root: Path) -> list[str]:
    complaints = []
    for path in repository.files(root):
        if path.name in LOCK_FILES:
            continue
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        complaints += check_text(path, text)
    return complaints


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
