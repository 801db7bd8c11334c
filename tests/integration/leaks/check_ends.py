#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that a program is checked once, however it ends, and that it ends.

Its report names the function that leaks, and none of the library.
"""

import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests" / sys.argv[1]
STATIC = PROGRAM.name.endswith("static")
FOUND = "detected leaks of 100 bytes in 1 objects"
CLEAN = "no leaks"
REFUSED = "was not made"

# The way to end, status, line on stderr. A static program is checked by a handler of exit.
STATIC_WAYS = ("thread", "small_stack", "clean_small_stack", "signal_stack", "handler_of_exit",
               "destructor", "child", "stderr_closed", "all_closed")
CASES = [
    ("return", 1, FOUND),
    ("thread", 1, FOUND),
    ("small_stack", 1, FOUND),
    ("clean_small_stack", 5, CLEAN),
    ("signal_stack", 1, FOUND),
    ("many_threads", 1, "detected leaks of"),
    ("first_thread", 1, FOUND),
    ("handler_of_exit", 1, FOUND),
    ("destructor", 1, FOUND),
    ("during_check", 3, REFUSED),
    ("child", 1, FOUND),
    ("no_files", 0, REFUSED),
    ("no_file_size", 1, FOUND),
    ("report_in_full_file", 1, None),
    ("no_data", 0, "has no memory for it"),
    ("stderr_closed", 1, FOUND),
    ("streams_closed", 1, FOUND),
    ("all_closed", 1, None),
    ("at_once", 3, None),
    ("quick", 4, None),
    ("replaced", 0, None),
]


def command(way):
    return [PROGRAM, way]


def environment(folder):
    return {**os.environ, "HEAPCHECK": "normal", "HEAP_CHECK_DUMP_DIRECTORY": folder}


def complaint(way, status, line, folder):
    result = subprocess.run(command(way), env=environment(folder), capture_output=True, text=True,
                            timeout=60)
    lines = [text for text in result.stderr.splitlines() if "eak check" in text]
    expected = len(lines) == 1 and line in lines[0] if line else not result.stderr
    if line == FOUND:
        expected = expected and "Leak+" in result.stderr and "tcmalloc::" not in result.stderr
    if result.returncode == status and expected:
        return None
    return f"{way}: status {result.returncode}, expected {status}\n{result.stderr}"


def complaint_of_reader(folder):
    """The report's stream ends with the program, though a child of it goes on."""
    program = subprocess.Popen(command("child_left_behind"), env=environment(folder), text=True,
                               stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    with program:
        # The child ends when its input does, so that a stream that it kept would not end here.
        text = program.stderr.read()
        status = program.wait()
    return None if status == 1 and FOUND in text else f"child left behind: status {status}\n{text}"


def complaint_of_filter(folder):
    """Where other threads go on, and a filter forbids a copy of the process, there is one line.

    glibc starts threads by another call.
    """
    refuse = pathlib.Path(os.environ.get("TCM_TEST_PROGRAMS_DIR", "")) / "refuse_calls"
    if STATIC or not refuse.exists():
        return None
    result = subprocess.run([refuse, "EPERM", "clone", *command("thread")], env=environment(folder),
                            capture_output=True, text=True, timeout=60)
    if result.returncode == 5 and result.stderr.count("\n") == 1 and REFUSED in result.stderr:
        return None
    return f"without clone: status {result.returncode}\n{result.stderr}"


def main():
    with tempfile.TemporaryDirectory() as folder:
        cases = [case for case in CASES if not STATIC or case[0] in STATIC_WAYS]
        complaints = [complaint(*case, folder) for case in cases]
        complaints += [complaint_of_reader(folder), complaint_of_filter(folder)]
        own = pathlib.Path(folder) / "own"
        if own.read_bytes():
            complaints.append(f"a file of the program was written to:\n{own.read_text()}")
    complaints = [text for text in complaints if text]
    print("\n".join(complaints) or f"{len(cases)} ways to end")
    return 1 if complaints else 0


if __name__ == "__main__":
    sys.exit(main())
