#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Makes the folder of documents that is installed: installed_docs.py OUT

A link to a file of the repository that is not installed becomes its text.
"""

import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
INSTALLED = ("README.md", "LICENSE", "docs", "examples")
LINK = re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\]\(<?([^)\s>]+)>?[^)]*\)")
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:|#")


def is_installed(document: Path, target: str, out: Path) -> bool:
    if SCHEME.match(target):
        return True
    path = (document.parent / target.partition("#")[0]).resolve()
    return path.is_relative_to(out) and path.exists()


def unlink(document: Path, out: Path) -> None:
    def replace(match: re.Match) -> str:
        return match[0] if is_installed(document, match[2], out) else match[1]

    document.write_text(LINK.sub(replace, document.read_text()))


def broken_links(out: Path) -> list[str]:
    """Lists the links of a folder's documents to things that do not exist there."""
    broken = []
    for document in sorted(out.rglob("*.md")):
        broken += [f"{document.relative_to(out)}: {match[2]}"
                   for match in LINK.finditer(document.read_text())
                   if not is_installed(document, match[2], out)]
    return broken


def main() -> int:
    out = Path(sys.argv[1]).resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in INSTALLED:
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, out / name)
    for document in out.rglob("*.md"):
        unlink(document, out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
