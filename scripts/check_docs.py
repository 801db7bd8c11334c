#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that what the documents point to exists.

In README.md, CONTRIBUTING.md and docs/: relative links with their #headings, and in backticks
repository paths (`src/base/bits.h`, or from src/: `base/bits.h`) and symbols in files
(`src/base/bits.h:Name`). Fenced code blocks are examples and are not read.

docs/locking.md has one row or more for each rank of src/base/lock_rank.h, in that order, and names
each file of src/ that declares a lock in a row of its rank.
"""

import re
import sys
from pathlib import Path

import repository

FENCE = re.compile(r"^(```|~~~).*?^\1", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\[[^\]]*\]\(<?([^)\s>]+)>?[^)]*\)")
CODE = re.compile(r"`([^`\n]+)`")
PATH = re.compile(r"(?P<path>[\w.+-]+(?:/[\w.+-]+)*/?)(?::(?P<symbol>~?[A-Za-z_][\w:~]*))?")
RANKS = re.compile(r"enum class LockRank[^{]*\{(.*?)\}", re.DOTALL)
LOCK = re.compile(r"\w+_?[{(]LockRank::(k\w+)[)}]")
RANK_ROW = re.compile(r"^\| `(k[A-Z]\w*)` \|(.*)$", re.MULTILINE)
SCHEME = re.compile(r"[a-z][a-z0-9+.-]*:")


def documents(root: Path, files: list[Path]) -> list[Path]:
    top = {Path("README.md"), Path("CONTRIBUTING.md")}
    return [p for p in files if p in top or (p.parts[0] == "docs" and p.suffix == ".md")]


def slug(heading: str) -> str:
    """The anchor that a heading gets on the usual hosts."""
    text = re.sub(r"[`*]", "", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", text).replace(" ", "-")


def anchors(path: Path) -> set[str]:
    text = FENCE.sub("", path.read_text())
    return {slug(heading) for heading in re.findall(r"^#+\s+(.*)$", text, re.MULTILINE)}


def check_link(root: Path, document: Path, target: str) -> str | None:
    if SCHEME.match(target):
        return None
    name, _, anchor = target.partition("#")
    path = root / document.parent / name if name else root / document
    if not path.exists():
        return f"{document}: link to {target}, which does not exist"
    if anchor and path.suffix == ".md" and anchor not in anchors(path):
        return f"{document}: link to {target}, but there is no such heading"
    return None


def contains_symbol(path: Path, symbol: str) -> bool:
    """True if the file has every name of a symbol such as Class::Method as a word."""
    text = path.read_text()
    return all(re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text) for name in symbol.split("::"))


def check_code(root: Path, document: Path, code: str, top_names, layer_names) -> str | None:
    match = PATH.fullmatch(code)
    if not match or ("/" not in match["path"] and not match["symbol"]):
        return None
    first = match["path"].split("/", 1)[0]
    if first in top_names:
        path = root / match["path"]
    elif first in layer_names and "/" in match["path"]:
        path = root / "src" / match["path"]
    else:
        return None
    if not path.exists():
        return f"{document}: `{code}`: {path.relative_to(root)} does not exist"
    symbol = match["symbol"]
    if symbol and (not path.is_file() or not contains_symbol(path, symbol)):
        return f"{document}: `{code}`: no {symbol} in {path.relative_to(root)}"
    return None


def read_ranks(root: Path) -> list[str]:
    path = root / "src/base/lock_rank.h"
    match = RANKS.search(path.read_text()) if path.exists() else None
    return re.findall(r"\b(k[A-Z]\w*)", re.sub(r"//.*", "", match[1])) if match else []


def read_locks(root: Path, files: list[Path]) -> list[tuple[str, Path]]:
    """The rank of each lock that src/ declares, and the file."""
    return [
        (rank, path)
        for path in files
        if path.parts[0] == "src" and path.suffix in {".h", ".cc"}
        for rank in LOCK.findall((root / path).read_text())
    ]


def check_locks(root: Path, files: list[Path]) -> list[str]:
    page = root / "docs/locking.md"
    rows = RANK_ROW.findall(page.read_text()) if page.exists() else []
    ranks = read_ranks(root)
    locks = read_locks(root, files)
    listed = list(dict.fromkeys(rank for rank, _ in rows))
    complaints = [f"no row for {rank}" for rank in ranks if rank not in listed]
    complaints += [f"{rank} is no LockRank" for rank in listed if rank not in ranks]
    if not complaints and listed != ranks:
        complaints.append("the rows are not in the order of LockRank")
    for rank, path in locks:
        if not any(rank == row and f"`{path}:" in text for row, text in rows):
            complaints.append(f"no row of {rank} names the lock in {path}")
    for rank, text in rows:
        if not any(rank == other and f"`{path}:" in text for other, path in locks):
            complaints.append(f"a row of {rank} names no file with such a lock")
    return [f"docs/locking.md: {complaint}" for complaint in complaints]


def check(root: Path) -> list[str]:
    files = repository.files(root)
    top_names = {path.parts[0] for path in files}
    layers = root / "src/LAYERS"
    lines = layers.read_text().splitlines() if layers.exists() else []
    layer_names = {line for line in lines if line and not line.startswith("#")}

    complaints = []
    for document in documents(root, files):
        text = FENCE.sub("", (root / document).read_text())
        complaints += [check_link(root, document, target) for target in LINK.findall(text)]
        complaints += [
            check_code(root, document, code, top_names, layer_names) for code in CODE.findall(text)
        ]
    return [complaint for complaint in complaints if complaint] + check_locks(root, files)


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
