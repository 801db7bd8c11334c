#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Preloads each library before programs that are linked with a library of gperftools of another
name, so that both are loaded, and checks that the process has one heap."""

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).parent / "beside_gperftools.c"
OURS = ("tcmalloc_minimal", "tcmalloc", "tcmalloc_and_profiler")
THEIRS = ("tcmalloc_minimal", "tcmalloc", "tcmalloc_and_profiler")
SKIPPED = 77
TIMEOUT_SECONDS = 120


def build(theirs, program, cc):
    """Returns true if gperftools is there."""
    command = [cc, "-O2", "-pthread", "-fno-builtin", str(SOURCE), f"-l:lib{theirs}.so.4",
               "-o", str(program)]
    return subprocess.run(command, capture_output=True, timeout=TIMEOUT_SECONDS).returncode == 0


def run(ours, program, library_dir):
    """Returns what is wrong, or None."""
    variables = dict(os.environ, LD_PRELOAD=f"{library_dir}/lib{ours}.so.4")
    ran = subprocess.run([str(program)], capture_output=True, text=True, env=variables,
                         timeout=TIMEOUT_SECONDS)
    if ran.returncode != 0:
        return f"ends with {ran.returncode}: {ran.stderr}"
    return None if ran.stdout == "one heap\n" else f"says {ran.stdout}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library-dir", default=os.environ.get("TCM_TEST_LIBRARY_DIR"))
    parser.add_argument("--cc", default="cc")
    arguments = parser.parse_args()
    if not arguments.library_dir:
        parser.error("no --library-dir")
    tried = failures = 0
    with tempfile.TemporaryDirectory(prefix="tcm_linking_") as directory:
        program = pathlib.Path(directory) / "program"
        for theirs in THEIRS:
            if not build(theirs, program, arguments.cc):
                continue
            for ours in OURS:
                problem = run(ours, program, arguments.library_dir)
                print(f"{ours:<22} before gperftools' {theirs:<22} {problem or 'ok'}", flush=True)
                tried += 1
                failures += problem is not None
    print(f"{tried - failures} of {tried} as expected")
    if tried == 0:
        return SKIPPED
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
