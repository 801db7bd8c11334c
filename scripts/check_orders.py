#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that each memory order of src/ stronger than relaxed names what it pairs with.

An atomic operation with another order than relaxed, or with none, which means the strongest, and
each fence, also the one of all threads, has a comment at its line, or directly above it or the
statement that it is part of: "pairs with Name", where Name is the function that the other side is
in, `Class::Name` where several have it. An acquire names a release, and a release an acquire; a
fence names any function, or a file of assembly. docs/locking.md names each file that has an order.
"""

import bisect
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import repository

ORDER = re.compile(r"(?:memory_order(?:::|_)|__ATOMIC_)(\w+)")
FENCE = re.compile(
    r"\batomic_(?:thread|signal)_fence\s*\(|(?<!bool )\bFenceThreads\s*\(|(?<![,:] )\bfence_\s*\("
)
OPERATION = re.compile(
    r"(?:\.|->)(load|store|exchange|compare_exchange_(?:weak|strong)|fetch_\w+|test_and_set)\s*\("
)
# Operators of atomic variables have no order, which means the strongest.
MEMBER = re.compile(r"std::atomic<[^;{}()]*?>\s+(\w+_)\b")
GLOBAL = re.compile(r"\bconstinit std::atomic<[^;{}()]*?>\s+(\w+)")
OPERATOR = r"(?:\+\+|--)\s*{0}\b|(?<![\w.>]){0}\s*(?:=(?!=)|[-+|&^]=|\+\+|--)"

# One name after "pairs with", and more after a comma or "and" where they look like functions. What
# stands before the name may say which operation of the function is meant.
OPERATIONS = r"(?:the [\w ]+? in )?"
NAME = r"(?:\w+\.S|(?:\w+::)+\w+|[A-Z]\w*)"
PAIRS = re.compile(
    rf"[Pp]airs? with {OPERATIONS}({NAME}|\w+)((?:(?:,| and|, and) {OPERATIONS}{NAME})*)"
)

TEXT = re.compile(
    r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|^\s*#(?:\\\n|[^\n])*', re.DOTALL | re.MULTILINE
)
TYPE = re.compile(
    r"^(?:template\s*<.*>\s*)?(?:class|struct|union|enum|namespace|extern)\b", re.DOTALL
)
TYPE_NAME = re.compile(r"(\w+)\s*(?:final\s*)?(?::[^:].*)?$", re.DOTALL)
LAMBDA = re.compile(r"\[[^\[\]]*\]\s*(?:\([^()]*\))?[^(){}]*$")
CONTROL = re.compile(r"^(?:if|for|while|switch|do|else|try|catch|return|case)\b")
ATTRIBUTE = re.compile(r"\b(?:__attribute__|alignas|TCMALLOC_\w+)\s*\((?:[^()]|\([^()]*\))*\)")
FUNCTION = re.compile(r"((?:\w+(?:<[^<>()]*>)?::)*~?\w+)\s*\(")


@dataclass
class Site:
    path: Path
    line: int
    function: str  # with the classes around it, as far as they are known
    acquires: bool
    releases: bool
    fence: bool
    comment: str


def without_text(source: str) -> str:
    """The source without comments, strings and directives, each character where it was."""
    return TEXT.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), source)


def name_of(header: str) -> tuple[str, str]:
    """The kind of what a brace after `header` opens, and the name of a type or a function."""
    header = re.sub(r"\b(?:public|private|protected)\s*:(?!:)", "", header).strip()
    header = ATTRIBUTE.sub("", header).strip()
    if TYPE.match(header):
        match = TYPE_NAME.search(re.sub(r"<[^<>]*>", "", header))
        return "type", match[1] if match and match[1] != "namespace" else ""
    if CONTROL.match(header) or LAMBDA.search(header):
        return "block", ""
    match = FUNCTION.search(re.sub(r"\btemplate\s*<[^{}]*?>\s*(?=\w)", "", header))
    if not match or "=" in header[: match.start()]:
        return "block", ""
    return "function", re.sub(r"<[^<>]*>", "", match[1])


def functions(code: str) -> list[tuple[int, str]]:
    """The offsets at which another function begins or goes on, and its name; "" outside of all."""
    scopes: list[tuple[str, str]] = []
    found = [(0, "")]
    header = 0
    parentheses = [0]
    for position, character in enumerate(code):
        if character in "()":
            parentheses[-1] += 1 if character == "(" else -1
        elif character == "{":
            scopes.append(name_of(code[header:position]))
            parentheses.append(0)
        elif character == "}" and scopes:
            scopes.pop()
            parentheses.pop()
        if character in "{}":
            inside = any(kind == "function" for kind, _ in scopes)
            name = "::".join(name for _, name in scopes if name)
            found.append((position, name if inside else ""))
        if character in "{}" or (character == ";" and parentheses[-1] == 0):
            header = position + 1
    return found


def arguments(code: str, start: int) -> str:
    """What stands between the parenthesis before `start` and the one that closes it."""
    depth = 1
    for position in range(start, len(code)):
        depth += {"(": 1, ")": -1}.get(code[position], 0)
        if depth == 0:
            return code[start:position]
    return code[start:]


def orders_in(code: str, atomics: set[str]) -> dict[int, set[str]]:
    """Offset to the orders of the operation there; {"fence"} and more for a fence."""
    found: dict[int, set[str]] = {}
    for match in FENCE.finditer(code):
        found[match.start()] = {"fence"}
    for match in OPERATION.finditer(code):
        named = set(ORDER.findall(arguments(code, match.end())))
        found[match.start()] = named or {"seq_cst"}
    spans = []
    for start in found:
        opening = code.index("(", start) + 1
        spans.append((start, opening + len(arguments(code, opening))))
    for match in ORDER.finditer(code):
        if not any(start <= match.start() <= end for start, end in spans):
            found[match.start()] = {match[1].lower()}
    for name in atomics:
        for match in re.finditer(OPERATOR.format(re.escape(name)), code):
            found.setdefault(match.start(), {"seq_cst"})
    return {at: orders for at, orders in found.items() if orders != {"relaxed"}}


def comment_above(lines: list[str], index: int) -> str:
    comment = []
    while index > 0 and lines[index - 1].strip().startswith("//"):
        index -= 1
        comment.insert(0, lines[index].strip().lstrip("/ "))
    return " ".join(comment)


def comments_at(lines: list[str], code: list[str], index: int) -> str:
    """The comment at the end of a line, and the ones above it and above its statement."""
    found = [lines[index].split("//", 1)[1].strip()] if "//" in lines[index] else []
    found.append(comment_above(lines, index))
    while index > 0 and code[index - 1].strip() and not re.search(r"[;{}:]\s*$", code[index - 1]):
        index -= 1
    found.append(comment_above(lines, index))
    return " ".join(found)


def sites_of(path: Path, source: str, code: str, atomics: set[str]) -> list[Site]:
    lines, code_lines, scopes = source.splitlines(), code.splitlines(), functions(code)
    sites = []
    for start, orders in sorted(orders_in(code, atomics).items()):
        index = code.count("\n", 0, start)
        function = scopes[bisect.bisect(scopes, start, key=lambda scope: scope[0]) - 1][1]
        fence = "fence" in orders
        strong = fence or bool(orders & {"acq_rel", "seq_cst"})
        sites.append(
            Site(
                path,
                index + 1,
                function,
                acquires=strong or bool(orders & {"acquire", "consume"}),
                releases=strong or "release" in orders,
                fence=fence,
                comment=comments_at(lines, code_lines, index),
            )
        )
    return sites


def partners(comment: str) -> list[str]:
    names = []
    for match in PAIRS.finditer(comment):
        names.append(match[1])
        names += re.findall(NAME, re.sub(OPERATIONS, "", match[2]))
    return names


def is_named(name: str, function: str) -> bool:
    """True where `function`, with the classes around it, ends with `name`."""
    return ("::" + function).endswith("::" + name)


def candidates(site: Site, name: str, names: set[str]) -> set[str]:
    """The functions that are meant: the one of the same class if it has one."""
    own = f"{site.function.rpartition('::')[0]}::{name}"
    return {own} if own in names else {other for other in names if is_named(name, other)}


def complaint(site: Site, sites: list[Site], names: set[str]) -> str | None:
    found = partners(site.comment)
    if not found:
        return "a memory order without a comment that says what it pairs with"
    for name in found:
        meant = candidates(site, name, names)
        if not meant:
            return f"pairs with {name}, which does not exist"
        if site.fence:
            continue
        others = [other for other in sites if other.function in meant]
        if not others:
            return f"pairs with {name}, which has no memory order"
        if not any(
            (site.acquires and other.releases) or (site.releases and other.acquires)
            for other in others
        ):
            return f"pairs with {name}, which has only orders of the same kind"
    return None


def unlisted(root: Path, sites: list[Site]) -> list[str]:
    """Files with an order that docs/locking.md does not name, nor the header of the same name."""
    page = root / "docs/locking.md"
    listed = set(re.findall(r"`(src/[\w./-]+?\.\w+)(?::\w+)?`", page.read_text()))
    return [
        f"{path}: has a memory order, and docs/locking.md does not name it"
        for path in sorted({site.path for site in sites})
        if not {str(path), str(path.with_suffix(".h"))} & listed
    ]


def check(root: Path) -> list[str]:
    paths = [path for path in repository.files(root) if path.parts[0] == "src"]
    texts = {path: (root / path).read_text() for path in paths if path.suffix in {".h", ".cc"}}
    codes = {path: without_text(text) for path, text in texts.items()}
    names = {path.name for path in paths if path.suffix == ".S"}
    sites = []
    for path, code in codes.items():
        names.update(name for _, name in functions(code))
        atomics = set(GLOBAL.findall(code))
        for header in {path, path.with_suffix(".h")} & codes.keys():
            atomics.update(MEMBER.findall(codes[header]))
        sites += sites_of(path, texts[path], code, atomics)
    found = [(site, complaint(site, sites, names)) for site in sites]
    complaints = [f"{site.path}:{site.line}: {text}" for site, text in found if text]
    return complaints + unlisted(root, sites)


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
