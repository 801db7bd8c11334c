#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that each folder of src/ includes only folders below it in src/LAYERS.

Also: files of one folder include each other without a cycle, where a header, its source and its
_inl.h count as one, the heap's global is declared by heap/heap.h alone, so that nothing below names
it, each include names a file of src/ or include/ by its full path, and the tcm_layer() declarations of CMake name what is included, no less
and no more.
"""

import re
import sys
from pathlib import Path

import repository

INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)
LAYER_CALL = re.compile(r"^\s*tcm_layer\s*\(([^)]*)\)", re.MULTILINE)
KEYWORDS = {"NAME", "FOR_SIZE", "SOURCES", "DEPENDS", "EXCEPTIONS"}
SOURCE_SUFFIXES = {".h", ".cc", ".c", ".inc", ".S"}

GLOBAL = re.compile(r"^\s*extern\s+constinit\s+Heap\s+heap\b", re.MULTILINE)
GLOBAL_HOME = "heap/heap.h"


def read_order(root: Path) -> dict[str, int]:
    """The rank of each layer: 0 is the bottom."""
    lines = (root / "src/LAYERS").read_text().splitlines()
    names = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
    return {name: rank for rank, name in enumerate(reversed(names))}


def read_includes(root: Path) -> dict[str, list[str]]:
    """Source file, relative to src/, to what it includes in quotes."""
    sources = {}
    for path in repository.files(root):
        if path.parts[0] == "src" and path.suffix in SOURCE_SUFFIXES:
            text = (root / path).read_text()
            sources["/".join(path.parts[1:])] = INCLUDE.findall(text)
    return sources


def read_declarations(root: Path) -> tuple[dict[str, set[str]], dict[str, list[str]]]:
    """Layer name to its DEPENDS, and to its SOURCES below src/, from every CMakeLists.txt there."""
    declarations = {}
    listed = {}
    for path in repository.files(root):
        if path.parts[0] != "src" or path.name != "CMakeLists.txt":
            continue
        text = re.sub(r"#.*", "", (root / path).read_text())
        for call in LAYER_CALL.findall(text):
            arguments = {keyword: [] for keyword in KEYWORDS}
            keyword = None
            for word in call.split():
                if word in KEYWORDS:
                    keyword = word
                elif keyword:
                    arguments[keyword].append(word)
            for name in arguments["NAME"]:
                declarations[name] = set(arguments["DEPENDS"])
                folder = "/".join(path.parts[1:-1])
                listed[name] = [f"{folder}/{source}" for source in arguments["SOURCES"]]
    return declarations, listed


def folder_of(path: str) -> str:
    return path.split("/", 1)[0]


def check_order(sources, order, public_headers) -> list[str]:
    complaints = []
    for source, includes in sources.items():
        folder = folder_of(source)
        if folder not in order:
            complaints.append(f"src/{source}: the folder {folder} is not in src/LAYERS")
            continue
        for include in includes:
            if include in public_headers:
                continue
            if include not in sources:
                complaints.append(f'src/{source}: "{include}" is no file of src/ or include/')
            elif order.get(folder_of(include), -1) > order[folder]:
                complaints.append(f'src/{source}: "{include}" stands above {folder}')
    return complaints


def check_cycles(sources) -> list[str]:
    """Finds a cycle by depth-first search; one suffices, the next shows after it is mended."""
    finished = set()
    path: list[str] = []

    def visit(source) -> list[str]:
        if source in path:
            cycle = path[path.index(source) :] + [source]
            return ["cycle, an arrow runs back: " + " -> ".join(cycle)]
        if source in finished or source not in sources:
            return []
        path.append(source)
        for include in sorted(sources[source]):
            complaints = visit(include)
            if complaints:
                return complaints
        path.pop()
        finished.add(source)
        return []

    for source in sorted(sources):
        complaints = visit(source)
        if complaints:
            return complaints
    return []


def part_of(path: str) -> str:
    return re.sub(r"(_inl)?\.[A-Za-z]+$", "", path)


def read_parts(sources) -> dict[str, set[str]]:
    """Part to the parts that its header or its source needs."""
    needs: dict[str, set[str]] = {}
    for source, includes in sources.items():
        part = part_of(source)
        others = {part_of(include) for include in includes if include in sources} - {part}
        needs.setdefault(part, set()).update(others)
    return needs


def check_global(root: Path) -> list[str]:
    return [
        f"{path}: only src/{GLOBAL_HOME} declares the global"
        for path in repository.files(root)
        if path.parts[0] == "src"
        and path.suffix in SOURCE_SUFFIXES
        and "/".join(path.parts[1:]) != GLOBAL_HOME
        and GLOBAL.search((root / path).read_text())
    ]


def layer_of(path: str, declarations, parts) -> str | None:
    """The declared layer that a file belongs to: the part of a folder that lists it or its source,
    or the one with the longest matching name."""
    if part_of(path) in parts:
        return parts[part_of(path)]
    matches = [name for name in declarations if path.startswith(name + "/")]
    return max(matches, key=len, default=None)


def closure(name: str, declarations) -> set[str]:
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        for dependency in declarations.get(waiting.pop(), ()):
            if dependency not in reached:
                reached.add(dependency)
                waiting.append(dependency)
    return reached


def listed_parts(listed) -> dict[str, str]:
    """Part of a file name to the layer of its folder that lists it beside the folder's own."""
    return {
        part_of(source): name
        for name, names in listed.items()
        if "/" in name
        for source in names
        if not source.startswith(name + "/") and source not in listed.get(folder_of(name), [])
    }


def check_declarations(sources, declarations, listed) -> list[str]:
    parts = listed_parts(listed)
    # A layer that compiles the sources of its folder once more includes what that does.
    copies = {
        name for name, names in listed.items()
        if "/" in name and any("${" in n or n in listed.get(folder_of(name), []) for n in names)
        and not any(n.startswith(name + "/") for n in names)
    }
    used: dict[str, set[str]] = {name: set() for name in declarations}
    complaints = []
    for source, includes in sources.items():
        layer = layer_of(source, declarations, parts)
        if layer is None:
            continue
        for include in includes:
            target = layer_of(include, declarations, parts)
            # A header without a source belongs to every part of its folder.
            alone = "/" not in str(target) and include.endswith(".h") and not any(
                part_of(name) == part_of(include) for name in sources if name != include
            )
            if target is None or target == layer or alone and folder_of(include) == folder_of(source):
                continue
            used[layer].add(target)
            if target not in closure(layer, declarations):
                complaints.append(f'src/{source}: "{include}", but {layer} does not DEPEND on {target}')
    for layer, dependencies in declarations.items():
        for dependency in sorted(dependencies - used[layer] if layer not in copies else ()):
            complaints.append(f"layer {layer}: DEPENDS on {dependency}, which no file of it includes")
    return complaints


def check_test_folders(root: Path, order) -> list[str]:
    """Unit tests use the same folder names as src/."""
    folders = {p.parts[2] for p in repository.files(root) if p.parts[:2] == ("tests", "unit") and len(p.parts) > 3}
    return [f"tests/unit/{folder}: no such layer in src/LAYERS" for folder in sorted(folders - set(order))]


def check(root: Path) -> list[str]:
    order = read_order(root)
    sources = read_includes(root)
    declarations, listed = read_declarations(root)
    public_headers = {
        "/".join(path.parts[1:]) for path in repository.files(root) if path.parts[0] == "include"
    }
    return (
        check_order(sources, order, public_headers)
        + (check_cycles(sources) or check_cycles(read_parts(sources)))
        + check_global(root)
        + check_declarations(sources, declarations, listed)
        + check_test_folders(root, order)
    )


if __name__ == "__main__":
    sys.exit(repository.run_check(check, __doc__))
