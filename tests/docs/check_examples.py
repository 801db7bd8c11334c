#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compiles the programs in a document and runs them: with the library linked, with the library
preloaded, and without it."""

import argparse
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = re.compile(r"^```cpp\n(.*?)^```", re.MULTILINE | re.DOTALL)
STANDARDS = ("c++17", "c++20")
WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wshadow", "-Wconversion", "-Werror")
LIBRARY = "libtcmalloc_minimal.so.4"
TIMEOUT_SECONDS = 120


def run(command, **environment):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS, env={**os.environ, **environment})


def complaints(source, directory, arguments):
    """What goes wrong with one program, as lines."""
    libraries = arguments.library_dir
    program = directory / "program"
    linked = [f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-ltcmalloc_minimal"]
    preload = {"LD_PRELOAD": str(pathlib.Path(libraries) / LIBRARY)}
    ways = [("linked", linked, {}), ("preloaded", [], preload), ("without the library", [], {})]
    said = {}
    for standard in STANDARDS:
        for way, link, environment in ways:
            built = run([arguments.cxx, f"-std={standard}", *WARNINGS, f"-I{arguments.include}",
                         source, *link, "-pthread", "-o", program])
            if built.returncode != 0:
                yield f"{standard}, {way}: does not build:\n{built.stderr}"
                continue
            ran = run([program], **environment)
            if ran.returncode != 0:
                yield f"{standard}, {way}: exit status {ran.returncode}\n{ran.stderr}"
            said[way] = ran.stdout
    if said.get("preloaded") == said.get("without the library"):
        yield f"says the same with the library and without: {said}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--library-dir", default=os.environ.get("TCM_TEST_LIBRARY_DIR"))
    parser.add_argument("document", type=pathlib.Path)
    arguments = parser.parse_args()
    programs = [text for text in PROGRAM.findall(arguments.document.read_text()) if "main(" in text]
    failures = []
    with tempfile.TemporaryDirectory(prefix="tcm_examples_") as directory:
        source = pathlib.Path(directory) / "example.cc"
        for program in programs:
            source.write_text(program)
            failures += complaints(source, pathlib.Path(directory), arguments)
    print("\n".join(failures) or f"{len(programs)} programs")
    return 1 if failures or not programs else 0


if __name__ == "__main__":
    sys.exit(main())
