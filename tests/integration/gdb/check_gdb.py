#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs the commands of tcm-gdb.py on a process and on its core file.

In both front ends and both page heaps, and under the debug library: what they say of live, freed and
large blocks, and that the sums are the library's own.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
SECONDS = 120
BLOCKS = 24
FIGURES = 7


def run_gdb(words, environment):
    """Both streams of gdb."""
    result = subprocess.run(["gdb", "-nx", "-batch", *words], env=environment, text=True, errors="replace",
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=SECONDS, check=False)
    return result.stdout


def questions(script):
    """Commands that ask for everything; each answer begins with a line of its own."""
    asked = ["live[%d]" % i for i in range(BLOCKS)] + ["freed[%d]" % i for i in range(BLOCKS)]
    asked += ["large", "(char*)large+700000", "freed_large", "freed_at_random", "&large", "(char*)live[2]+3"]
    words = ["-ex", f"source {script}"]
    for expression in asked:
        words += ["-ex", f"echo @{expression}\\n", "-ex", f"heap block {expression}"]
    words += ["-ex", "echo @stats\\n", "-ex", "heap stats", "-ex", "echo @figures\\n", "-ex", "output figures", "-ex", "echo \\n@end\\n"]
    return words


def answers(output):
    parts = re.split(r"^@(.*)\n", output, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2]))


class Check:
    def __init__(self, mode):
        self.mode = mode
        self.failures = []

    def expect(self, said, question, pattern):
        answer = said.get(question, "no answer")
        if not re.search(pattern, answer):
            self.failures.append(f"{self.mode}: {question}: expected {pattern!r}, got {answer.strip()!r}")

    def blocks(self, said):
        for i in range(BLOCKS):
            self.expect(said, f"live[{i}]", r"is in the span at .*\n(The object has.*\n)It is live\.")
            self.expect(said, f"freed[{i}]", r"It is free|free pages")
        self.expect(said, "large", r"of one large object\.\nThe object has \d+ bytes.*\nIt is live\.")
        # Most large blocks are samples. Those of a small program have copies of their stacks.
        if "It is a sample" in said.get("large", ""):
            self.expect(said, "large", r" at:\n    (@ 0x|\(its stack is a copy that was not walked yet\))")
        self.expect(said, "(char*)large+700000", r"of one large object\.\nThe address is 700000 bytes from the start.*\n.*\nIt is live")
        self.expect(said, "freed_large", r"free pages")
        is_sorted = self.mode.startswith("per_thread")
        self.expect(said, "freed_at_random", r"It is free.*, sorted by pages" if is_sorted else "It is free|free pages")
        self.expect(said, "&large", r"in no span of the heap")
        self.expect(said, "(char*)live[2]+3", r"The address is 3 bytes from the start .*\n.*\nIt is live")

    def samples(self, said):
        for i in range(BLOCKS):
            self.expect(said, f"live[{i}]", r"(of samples|class \d+)(.|\n)*It is live\.\nIt is a sample: \d+ bytes, allocated by thread \d+ at:\n    @ 0x[0-9a-f]+ .*Allocate")
            self.expect(said, f"freed[{i}]", r"It is free, in a span of samples|free pages|is in the span")
        self.expect(said, "large", r"of one large object\.\n.*\nIt is live\.\nIt is a sample: 1048576 bytes")

    def hardened_blocks(self, said):
        for i in range(BLOCKS):
            self.expect(said, f"live[{i}]", r"It is live\.")
            self.expect(said, f"freed[{i}]", r"It is freed, in the quarantine of hardened mode|It is free|free pages")
        self.expect(said, "large", r"It is live\.")
        self.expect(said, "freed_large", r"It is freed, in the quarantine of hardened mode")

    def guarded_blocks(self, said):
        """Most blocks of up to a page are guarded."""
        for i in (0, 1, 2):
            self.expect(said, f"live[{i}]", r"The guarded block at .* bytes and is live\.\nAllocated by thread \d+:\n    @ 0x[0-9a-f]+ .*Allocate")
            self.expect(said, f"freed[{i}]", r"The guarded block at .* bytes and is freed\.\nAllocated by (.|\n)*Freed by thread \d+:\n    @ 0x")
        self.expect(said, "(char*)live[2]+3", r"The guarded block at .*\nThe address is 3 bytes from its start\.")

    def debug_blocks(self, said):
        for i in range(BLOCKS):
            self.expect(said, f"live[{i}]", r"bytes of malloc and is live\.\nAllocated by thread .*\n    @ 0x[0-9a-f]+ .*Allocate")
            self.expect(said, f"freed[{i}]", r"freed, in the free queue\.\nAllocated by(.|\n)*Freed by thread .*\n    @ 0x")
        self.expect(said, "(char*)large+700000", r"has 1048576 bytes of malloc and is live\.\nThe address is 700000 bytes from its start")

    def sums(self, said):
        """The library's figures are those that blocks.cc asks for, in their order."""
        wanted = [int(word) for word in re.findall(r"\d+", said.get("figures", ""))]
        def figure(meaning):
            found = re.search(rf"^ *(\d+) .*{meaning}", said.get("stats", ""), re.MULTILINE)
            return int(found.group(1)) if found else 0

        returned = figure("of free pages that the system has")
        got = [figure("in use by the application"), figure("of address space for the heap") - returned, figure("bytes of free pages$"),
               figure("in central free lists") + figure("of spans that were never touched"), figure("in transfer caches"),
               figure("in caches of threads") + figure("in caches of CPUs"),
               returned]
        if len(wanted) != FIGURES or wanted != got:
            self.failures.append(f"{self.mode}: the library says {wanted}, gdb says {got}")


def check_mode(arguments, mode, library, settings, folder):
    environment = {name: value for name, value in os.environ.items() if not name.startswith("TCMALLOC_")}
    # Only the program runs under the library, not gdb.
    start = [word for name, value in [("LD_PRELOAD", library), *settings.items()]
             for word in ("-ex", f"set environment {name} {value}")]
    core = folder / f"core.{mode}"
    asked = questions(arguments.script)
    live = run_gdb([*start, "-ex", "break Stop", "-ex", "run", *asked, "-ex", f"generate-core-file {core}", "-ex", "kill",
                    arguments.program], environment)
    if "ptrace" in live and not core.exists():
        return None
    check = Check(mode)
    dead = run_gdb([*asked, arguments.program, str(core)], environment)
    for where, output in (("process", live), ("core", dead)):
        check.mode = f"{mode}, {where}"
        said = answers(output)
        if not said:
            check.failures.append(f"{check.mode}: {output}")
        elif mode == "debug":
            check.debug_blocks(said)
        elif mode == "guarded":
            check.guarded_blocks(said)
        elif mode == "hardened":
            check.hardened_blocks(said)
        elif mode == "samples":
            check.samples(said)
            check.sums(said)
        elif mode == "twins":
            check.sums(said)
        else:
            check.blocks(said)
            check.sums(said)
    core.unlink(missing_ok=True)
    return check.failures


def check_drained(arguments):
    """What is said of a block that was freed twice, where its span has no bits any more."""
    environment = dict(os.environ)
    start = ["-ex", f"set environment LD_PRELOAD {arguments.library}", "-ex", "set environment TCMALLOC_FRONT_END per_thread"]
    output = run_gdb([*start, "-ex", "run twice", "-ex", f"source {arguments.script}", "-ex", "heap block freed[0]", arguments.program],
                     environment)
    said = "SIGABRT" in output and "It is free" in output
    return [] if said else [f"freed twice: {output}"]


def check_chains(arguments):
    """A word of a transfer cache is unpacked to the same, whatever CPU it was put away on."""
    reference, count = 1 << 63 | 0x7F3, 7
    failures = []
    for cpu in (0, 1, 16, 63):
        word = reference | count << 45 | cpu << 57
        output = run_gdb(["-ex", f"source {arguments.script}", "-ex", f"python print(unpack_chain({word}))"], dict(os.environ))
        if str((reference, count, False)) not in output:
            failures.append(f"a chain of CPU {cpu}: {output}")
    return failures


def check_missing(arguments, folder):
    """What is said where the debugging information, or the allocator, is missing."""
    stripped = folder / "libtcmalloc.so.4"
    subprocess.run(["strip", "-o", stripped, arguments.library], check=True)
    environment = dict(os.environ)
    start = ["-ex", "break Stop", "-ex", "run", "-ex", f"source {arguments.script}", "-ex", "heap stats", "-ex", "kill", arguments.program]
    failures = []
    for preload, words in ((stripped, "no debugging information"), ("", "no TCMalloc in this program")):
        output = run_gdb(["-ex", f"set environment LD_PRELOAD {preload}", *start], environment)
        if words not in output or "Traceback" in output:
            failures.append(f"with {preload or 'no library'}: {output}")
    return failures


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--debug-library", required=True)
    parser.add_argument("--script", required=True)
    arguments = parser.parse_args()
    if shutil.which("gdb") is None or "python" not in run_gdb(["-ex", "python print('python')"], dict(os.environ)):
        print("no gdb with Python")
        return SKIPPED
    modes = {f"{front_end}, {page_heap}": (arguments.library, {"TCMALLOC_FRONT_END": front_end, "TCMALLOC_PAGE_HEAP": page_heap})
             for front_end in ("per_thread", "per_cpu") for page_heap in ("classic", "huge")}
    modes["samples"] = (arguments.library, {"TCMALLOC_SAMPLE_PARAMETER": "1"})
    # Samples beside which the block of the cache waits.
    modes["twins"] = (arguments.library, {"TCMALLOC_SAMPLE_PARAMETER": "65536"})
    modes["guarded"] = (arguments.library, {"TCMALLOC_SAMPLE_PARAMETER": "1", "TCMALLOC_GUARDED_SAMPLE_PARAMETER": "1"})
    modes["hardened"] = (arguments.library, {"TCMALLOC_MODE": "hardened"})
    modes["debug"] = (arguments.debug_library, {})
    failures = []
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            results = list(pool.map(lambda mode: check_mode(arguments, mode, *modes[mode], folder), modes))
        if None in results:
            print("gdb may not run programs here")
            return SKIPPED
        failures += [failure for found in results for failure in found]
        failures += check_missing(arguments, folder)
        failures += check_drained(arguments)
        failures += check_chains(arguments)
    print("\n".join(failures) or f"{len(modes)} modes, as promised")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
