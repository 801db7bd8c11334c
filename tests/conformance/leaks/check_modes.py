#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks what each mode and variable of the leak checker finds in one program."""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests/leak_modes"

# Environment, bytes that are found, exit status.
CASES = [
    ("HEAPCHECK=minimal", 0, 0),
    ("HEAPCHECK=normal", 11, 1),
    ("HEAPCHECK=strict", 33, 1),
    ("HEAPCHECK=draconian", 110, 1),
    ("HEAPCHECK=local", None, 0),
    ("HEAPCHECK=off", None, 0),
    ("HEAPCHECK=", None, 0),
    ("HEAPCHECK=as-is", 11, 1),
    ("HEAPCHECK=as-is HEAP_CHECK_AFTER_DESTRUCTORS=1", 33, 1),
    ("HEAPCHECK=as-is HEAP_CHECK_IGNORE_THREAD_LIVE=0", 55, 1),
    ("HEAPCHECK=as-is HEAP_CHECK_IGNORE_GLOBAL_LIVE=0 HEAP_CHECK_IGNORE_THREAD_LIVE=0", 110, 1),
    ("HEAPCHECK=normal HEAP_CHECK_IGNORE_THREAD_LIVE=0", 11, 1),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_EXIT_CODE=23", 11, 23),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_EXIT_CODE=0", 11, 0),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_REPORT=0", None, 1),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_SUPPRESSIONS=FOLDER/loser", 0, 0),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_SUPPRESSIONS=FOLDER/file", 0, 0),
    ("HEAPCHECK=normal TCMALLOC_HEAP_CHECK_SUPPRESSIONS=FOLDER/other", 11, 1),
]
# Of the other program: variables, bytes that are found, text of the report, and how often it is there.
POINTERS = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests/leak_pointers"
POINTER_CASES = [
    ("", 5275, "The 20 largest leaks:", 1),
    ("HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=1", 5175, "Leak of 5000 bytes in 1 objects allocated", 1),
    ("HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=3", 5275, 'ALIGNMENT="3": expected a power of two', 1),
    ("HEAP_CHECK_MAX_POINTER_OFFSET=-1", 275, "Leak of 100 bytes in 1 objects allocated", 1),
    ("HEAP_CHECK_MAX_POINTER_OFFSET=2000", 275, "Leak of 5000", 0),
    ("HEAP_CHECK_MAX_POINTER_OFFSET=1999", 5275, "Leak of 5000", 1),
    ("HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=1 HEAP_CHECK_MAX_POINTER_OFFSET=-1", 175, "Leak of 7 bytes", 20),
    ("HEAP_CHECK_MAX_LEAKS=3", 5275, "Leak of ", 3),
    ("HEAP_CHECK_MAX_LEAKS=0", 5275, "Leak of ", 27),
    ("HEAP_CHECK_IDENTIFY_LEAKS=0", 5275, "\tblock 0x", 0),
    ("HEAP_CHECK_IDENTIFY_LEAKS=1", 5275, "\tblock 0x", 20),
    ("HEAP_CHECK_TEST_POINTER_ALIGNMENT=1", 5275, "26 blocks are lost with pointers at any address", 1),
    # Every allocation is a sample, whose records lead to the block and to what was on the stack.
    ("TCMALLOC_SAMPLE_PARAMETER=1", 5275, "The 20 largest leaks:", 1),
    ("HEAP_CHECK_RUN_UNDER_GDB=1", 5275, "The 20 largest leaks:", 1),
    ("HEAP_CHECK_DUMP_DIRECTORY=/nowhere", 5275, 'profile "/nowhere/leak_pointers.', 1),
]
SUPPRESSIONS = {"loser": "# a comment\nleak:Loser::Loser\n", "file": "leak:leak_modes$\n",
                "other": "leak:^oser\nrace:Loser\nleak:nothing*here\n"}
FOUND = re.compile(r"^Leak check _main_ detected leaks of (\d+) bytes", re.M)


def complaint(settings, size, status, folder):
    variables = dict(setting.split("=", 1) for setting in
                     settings.replace("FOLDER", folder).split())
    result = subprocess.run([PROGRAM], env={**os.environ, "HEAP_CHECK_DUMP_DIRECTORY": folder,
                                            **variables},
                            capture_output=True, text=True, timeout=120)
    found = FOUND.search(result.stderr)
    bytes_found = int(found[1]) if found else 0 if "no leaks" in result.stderr else None
    # What libc allocates is among the blocks that draconian reports.
    enough = bytes_found is not None and size == 110 and bytes_found >= size
    if (bytes_found != size and not enough) or result.returncode != status:
        return (f"{settings}: found {bytes_found} bytes with status {result.returncode}, "
                f"expected {size} with {status}\n{result.stderr}")
    return None


def pointer_complaint(settings, size, text, times, folder):
    variables = dict(setting.split("=", 1) for setting in settings.split())
    result = subprocess.run([POINTERS], env={**os.environ, "HEAPCHECK": "normal",
                                             "HEAP_CHECK_DUMP_DIRECTORY": folder, **variables},
                            capture_output=True, text=True, timeout=120)
    found = FOUND.search(result.stderr)
    if result.returncode == 1 and found and int(found[1]) == size and result.stderr.count(text) == times:
        return None
    return (f"{settings}: expected {size} bytes, and {times} times {text!r}; status {result.returncode}\n"
            f"{result.stderr}")


def check_without_fork():
    """A process with one thread needs no copy of itself."""
    refuse = pathlib.Path(os.environ["TCM_TEST_PROGRAMS_DIR"]) / "refuse_calls"
    if not refuse.exists():
        return None
    result = subprocess.run([refuse, "EPERM", "clone", PROGRAM],
                            env={**os.environ, "HEAPCHECK": "normal"},
                            capture_output=True, text=True, timeout=120)
    if result.returncode == 1 and "detected leaks of 11 bytes" in result.stderr:
        return None
    return f"without clone: status {result.returncode}\n{result.stderr}"


def check_other_tools(folder):
    """A leak keeps no other tool from what it does at exit."""
    for mode in ("normal", "strict"):
        base = pathlib.Path(folder) / f"other_{mode}"
        result = subprocess.run([PROGRAM], env={**os.environ, "HEAPCHECK": mode, "MALLOCSTATS": "1",
                                                "HEAP_CHECK_DUMP_DIRECTORY": folder, "HEAPPROFILE": f"{base}_all",
                                                "TCMALLOC_HEAP_PROFILE": f"{base}_sampled"},
                                capture_output=True, text=True, timeout=120)
        missing = [name for name in ("all.0001.heap", "sampled") if not base.with_name(f"{base.name}_{name}").exists()]
        if missing or result.returncode != 1 or "MALLOC:" not in result.stderr:
            return f"{mode}: status {result.returncode}, without {missing}\n{result.stderr}"
    return None


def check_files(folder):
    """A text and a profile.proto lie in the folder for each report."""
    texts = list(pathlib.Path(folder).glob("leak_modes.*._main_-end.heap"))
    protos = list(pathlib.Path(folder).glob("leak_modes.*._main_-end.heap.pb.gz"))
    if not texts or len(texts) != len(protos):
        return f"{len(texts)} texts and {len(protos)} profiles were written"
    head = texts[0].read_text().splitlines()[0]
    if not re.match(r"heap profile: +\d+: +\d+ \[ *\d+: +\d+\] @ heapprofile$", head):
        return f"a text begins with {head!r}"
    return None


def main():
    with tempfile.TemporaryDirectory() as folder:
        for name, text in SUPPRESSIONS.items():
            (pathlib.Path(folder) / name).write_text(text)
        complaints = [complaint(*case, folder) for case in CASES] + [check_files(folder), check_without_fork(), check_other_tools(folder)]
        complaints += [pointer_complaint(*case, folder) for case in POINTER_CASES]
    complaints = [text for text in complaints if text]
    print("\n".join(complaints) or f"{len(CASES) + len(POINTER_CASES)} cases passed")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
