#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs each program of the corpus under the leak checker, in each mode of the allocator.

Every leak must be found with its bytes, objects and site, and nothing else. A program of unknown
size, 0 bytes with a site, must have a leak there.
"""

import itertools
import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests/leak_corpus"
# System calls that the kernel shall refuse to the programs.
CALLS = os.environ.get("TCM_LEAK_REFUSED")
REFUSED = [pathlib.Path(os.environ["TCM_TEST_PROGRAMS_DIR"]) / "refuse_calls", "EPERM", CALLS] if CALLS else []
MODES = [dict(zip(("TCMALLOC_FRONT_END", "TCMALLOC_PAGE_HEAP"), values))
         for values in itertools.product(("per_thread", "per_cpu"), ("classic", "huge"))]
TOTAL = re.compile(r"^Leak check _main_ detected leaks of (\d+) bytes in (\d+) objects$", re.M)
TIMEOUT_SECONDS = 120
# A thread that allocates holds its newest block in a register alone for a moment. Without tgkill no
# thread is held, so that nobody can read its registers.
NEED_REGISTERS = ("threads_that_allocate",) if CALLS and "tgkill" in CALLS else ()


def run(name, mode, folder, check="normal"):
    environment = {**os.environ, **mode, "HEAPCHECK": check, "HEAP_CHECK_DUMP_DIRECTORY": folder}
    return subprocess.run([*REFUSED, PROGRAM, name], env=environment, capture_output=True, text=True,
                          timeout=TIMEOUT_SECONDS)


def complaint(expected, result):
    name, size, objects, site = expected
    found = TOTAL.search(result.stderr)
    if not site:
        if result.returncode != 0 or found or "no leaks" not in result.stderr:
            return "is clean, but was not found so"
        return None
    if result.returncode != 1 or not found:
        return "has a leak that was not found"
    if size and (int(found[1]), int(found[2])) != (size, objects):
        return f"leaks {size} bytes in {objects} objects, but {found[1]} in {found[2]} were found"
    first = result.stderr.split("Leak of ")[1]
    if not re.search(rf"\b{site}\+", first):
        return f"leaks at {site}, but another site is the largest"
    if any(line.startswith("\t@") and not line.endswith(")") for line in first.splitlines()):
        return "has a line without the place in the file"
    return None


def main():
    listing = subprocess.run([PROGRAM, "--list"], check=True, capture_output=True, text=True).stdout
    programs = []
    for line in listing.splitlines():
        name, size, objects, site = (line + " ").split(" ")[:4]
        if name not in NEED_REGISTERS:
            programs.append((name, int(size), int(objects), site))
    wanted = sys.argv[1:]
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        for expected, mode in itertools.product(programs, MODES):
            if wanted and expected[0] not in wanted:
                continue
            result = run(expected[0], mode, folder)
            problem = complaint(expected, result)
            if problem:
                failures += 1
                print(f"{expected[0]} {problem} ({' '.join(mode.values())}, status "
                      f"{result.returncode}):\n{result.stderr}")
    leaking = sum(1 for program in programs if program[3])
    print(f"{leaking} programs with a leak, {len(programs) - leaking} without, {len(MODES)} modes: "
          f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
