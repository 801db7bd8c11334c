#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs a program that was built with gperftools itself on our library.

The program is compiled with the headers of Debian's libgoogle-perftools-dev and linked with the
libraries of that package; when it runs, our library is found first. Skipped where the package is
not installed.
"""

import argparse
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

SKIPPED = 77
TIMEOUT_SECONDS = 120


def run(command, **options):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS, **options)


def find_libraries(prefix):
    """The directory of the package's libraries, or None."""
    for directory in (prefix / f"lib/{platform.machine()}-linux-gnu", prefix / "lib"):
        if (directory / "libtcmalloc_minimal.so").exists():
            return directory
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--prefix", type=pathlib.Path, default=pathlib.Path("/usr"))
    parser.add_argument("--library-dir", default=os.environ.get("TCM_TEST_LIBRARY_DIR"))
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--tests", type=pathlib.Path, default=".", help="where sources include from")
    parser.add_argument("source", type=pathlib.Path)
    arguments = parser.parse_args()
    include = arguments.prefix / "include"
    libraries = find_libraries(arguments.prefix)
    if not (include / "gperftools/malloc_extension.h").exists() or libraries is None:
        print("libgoogle-perftools-dev is not installed")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_gperftools_") as directory:
        program = pathlib.Path(directory) / "program"
        built = run([arguments.cxx, "-std=c++20", "-O1", "-fno-builtin", "-pthread",
                     f"-I{include}", f"-I{arguments.tests}", arguments.source, f"-L{libraries}",
                     "-Wl,--no-as-needed", "-ltcmalloc_minimal", "-o", program])
        if built.returncode != 0:
            print(f"does not build:\n{built.stderr}")
            return 1
        environment = {**os.environ, "LD_LIBRARY_PATH": arguments.library_dir, "LD_BIND_NOW": "1"}
        environment.pop("LD_PRELOAD", None)
        ran = run([program], env=environment)
        print(f"exit status {ran.returncode}\n{ran.stderr}", end="")
        return 1 if ran.returncode != 0 else 0


if __name__ == "__main__":
    sys.exit(main())
