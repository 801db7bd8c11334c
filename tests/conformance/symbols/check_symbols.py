#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares what a library defines with lists of symbols.

Every name of a list must be there, as a function where it is no variable or table of the compiler's, except
those of exceptions.txt; an exception that the library does define is an error as well, because it
would be out of date. The names of ours.txt and libc.txt must be there too where the library is an
allocator, and those of absent.txt must not where it has no profiles. Headers declare the C functions of
ours.txt. For a shared library its dynamic symbols count,
and each of them must be in a list; for an archive those that its members share.
"""

import argparse
import pathlib
import re
import subprocess
import sys

FUNCTION_KINDS = set("TWiu")
VARIABLES = frozenset(("_ZN11HeapCleaner14heap_cleanups_E", "_ZN11ProfileData14kMaxStackDepthE",
                       "heap_leak_checker_bcad_variable"))
TIMEOUT_SECONDS = 120


def read_names(path):
    lines = path.read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def defined_symbols(library):
    """The kinds, as nm's letters, of each name."""
    dynamic = [] if library.suffix == ".a" else ["-D"]
    listing = subprocess.run(["nm", *dynamic, "--defined-only", "--extern-only", str(library)],
                             check=True, capture_output=True, text=True,
                             timeout=TIMEOUT_SECONDS).stdout
    kinds = {}
    for line in listing.splitlines():
        fields = line.split()
        if len(fields) == 3:
            kinds.setdefault(fields[2].split("@")[0], set()).add(fields[1])
    return kinds


def is_table(name):
    return name.startswith("_ZT")


def complaints(library, lists, exceptions, absent):
    symbols = defined_symbols(library)
    for path in lists:
        for name in read_names(path):
            kinds = symbols.get(name)
            if name in exceptions:
                if kinds:
                    yield f"{name} is defined, but stands among the exceptions"
            elif not kinds:
                yield f"{name} of {path.name} is missing"
            elif not is_table(name) and name not in VARIABLES and not kinds & FUNCTION_KINDS:
                yield f"{name} of {path.name} is no function but {' '.join(kinds)}"
    for name in absent:
        if name in symbols:
            yield f"{name} is defined, but this library must not have it"
    if library.suffix != ".a":
        listed = {name for path in lists for name in read_names(path)}
        for name in sorted(symbols.keys() - listed - set(absent)):
            yield f"{name} is exported, and no list has it"


def undeclared(names, include):
    words = set()
    for header in include.rglob("*.h"):
        words.update(re.findall(r"\w+", header.read_text()))
    for name in names:
        if not name.startswith("_Z") and name not in words:
            yield f"{name} is declared in no header of {include.name}/"


def main():
    here = pathlib.Path(__file__).parent
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("lists", type=pathlib.Path, nargs="+")
    parser.add_argument("--profiles", action="store_true", help="the library has profiles")
    parser.add_argument("--no-allocator", action="store_true", help="it has nothing but them")
    arguments = parser.parse_args()
    if not arguments.no_allocator:
        arguments.lists += [here / "ours.txt", here / "libc.txt"]
    failures = list(complaints(arguments.library, arguments.lists,
                               set(read_names(here / "exceptions.txt")),
                               [] if arguments.profiles else read_names(here / "absent.txt")))
    failures += undeclared(read_names(here / "ours.txt"), here.parents[2] / "include")
    count = sum(len(read_names(path)) for path in arguments.lists)
    print("\n".join(failures) or f"{count} names in {arguments.library.name}")
    return 1 if failures or count == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
