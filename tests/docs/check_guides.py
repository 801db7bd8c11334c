#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that what docs/guides/ calls ours exists: variables, properties, functions, headers.

In a table the first column names what others have; whatever the other columns have in backticks is
ours. Elsewhere that holds for names that can only be ours. A section `Not there yet` is the other
way round: a variable there must not be in the table of options.
"""

import argparse
import pathlib
import re
import sys

NOT_YET = "Not there yet"
CODE = re.compile(r"`([^`\n]+)`")
NAME = re.compile(r"[A-Za-z_][\w.]*(?:::~?\w+)*")
VARIABLE = re.compile(r"(TCMALLOC|HEAPPROFILE|HEAP_PROFILE|HEAPCHECK|CPUPROFILE)[A-Z_]*|MALLOCSTATS")
PROPERTY = re.compile(r"(?:generic|tcmalloc)\.\w+")
HEADER = re.compile(r"(?:gperftools|google|tcmalloc)/\w+\.h")
# Names that are ours wherever they stand.
SURELY_OURS = re.compile(
    rf"{VARIABLE.pattern}|{PROPERTY.pattern}|{HEADER.pattern}|MallocExtension\W.*|tc_\w+")
# Options of compilers and linkers that a name may carry.
PREFIX = re.compile(r"^-(?:D|l)?")
# Names in those columns that are neither ours nor meant to be.
OF_OTHERS = {"stdc", "pthread", "find_package", "PKG_CONFIG_PATH", "OUT", "jeprof.1.0.f.heap",
             "disasm", "ist", "tagfocus"}


def words_of(paths):
    return set(re.findall(r"\w+", "\n".join(path.read_text() for path in paths)))


class Names:
    """Everything that the library has a name for."""

    def __init__(self, root):
        table = (root / "src/options/option_table.cc").read_text()
        # Variables that the library knows only to say that it lacks the tool.
        table = re.sub(r"MissingTool kMissingTools.*?\};", "", table, flags=re.DOTALL)
        build_options = (root / "cmake/Options.cmake").read_text()
        self.include = root / "include"
        profiler = (root / "src/cpu_profile/settings.cc").read_text()
        self.variables = set(re.findall(r'\{"([A-Z_]+)"', table)) | set(
            re.findall(r'name == "([A-Z_]+)"', profiler))
        self.build_options = set(re.findall(r"\bset\((TCMALLOC_\w+)", build_options))
        properties = (root / "src/extension/properties.cc").read_text()
        self.properties = set(re.findall(r'"((?:generic|tcmalloc)\.[\w.]+)"', properties))
        self.members = words_of((self.include / "gperftools").glob("malloc_extension*.h"))
        files = [*self.include.rglob("*.h"), *(root / "src/override").iterdir(),
                 *(root / "cmake").glob("*.cmake"), *(root / "tool").rglob("*.go"),
                 root / "src/heap_profile/profile_writer.cc"]
        self.words = words_of(files) | words_of([root / "src/options/option_table.cc"])

    def has(self, name):
        if VARIABLE.fullmatch(name):
            return name in self.variables or name in self.build_options
        if PROPERTY.fullmatch(name):
            return name in self.properties
        if name.startswith("MallocExtension::"):
            return name.removeprefix("MallocExtension::") in self.members
        return name in OF_OTHERS or all(word in self.words for word in re.findall(r"\w+", name))


def unknown_names(code, names):
    """What a piece of code names that does not exist."""
    if HEADER.fullmatch(code):
        return [] if (names.include / code).exists() else [code]
    missing = []
    for part in code.split():
        found = [name.rstrip(".") for name in NAME.findall(PREFIX.sub("", part))]
        missing += [name for name in found if not names.has(name)]
    return missing


def code_of(line):
    """The pieces of code in a line that name something of ours."""
    if line.startswith("|"):
        _, _, others = line.strip("|").partition("|")
        return CODE.findall(others)
    pieces = CODE.findall(line)
    return [code for code in pieces if SURELY_OURS.fullmatch(code)]


def check(page, names):
    """Returns the complaints about a page and the number of pieces of code that were looked up."""
    complaints = []
    looked_up = 0
    section = ""
    for number, line in enumerate(page.read_text().splitlines(), start=1):
        if line.startswith("#"):
            section = line.lstrip("# ")
        where = f"{page.name}:{number}"
        if section == NOT_YET:
            for code in CODE.findall(line):
                looked_up += 1
                if VARIABLE.fullmatch(code) and names.has(code):
                    complaints.append(f"{where}: {code} exists")
            continue
        for code in code_of(line):
            looked_up += 1
            complaints += [f"{where}: there is no {name}" for name in unknown_names(code, names)]
    return complaints, looked_up


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--root", type=pathlib.Path, required=True)
    root = parser.parse_args().root
    names = Names(root)
    pages = sorted((root / "docs/guides").glob("*.md"))
    failed = not pages
    for page in pages:
        complaints, looked_up = check(page, names)
        print("\n".join([*complaints, f"{page.name}: {looked_up} names looked up"]))
        # The other guides need not name anything.
        translates = page.read_text().startswith("# Coming from ")
        failed = failed or bool(complaints) or (translates and looked_up < 10)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
