#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs the corpus of mistakes under a library and compares the outcomes with outcomes.txt.

Each line of that file names a class, the sizes for which the default library and the hardened mode
notice it everywhere, and the words by which the debug libraries name it. A mistake is noticed if the
process ends by abort with one message of the library or, in hardened mode, by the kernel's signal;
`fault` stands for that signal, too. What is not promised may have any outcome but a hang.
"""

import argparse
import collections
import concurrent.futures
import os
import pathlib
import signal
import subprocess
import sys

SECONDS = 60
FAULTS = {-signal.SIGSEGV, -signal.SIGBUS}


def read_outcomes(path):
    """Class to (sizes that are noticed, by kind; words of the debug libraries)."""
    outcomes = {}
    for line in path.read_text().splitlines():
        if line.strip() and not line.startswith("#"):
            name, default, hardened, words = (field.strip() for field in line.split("|"))
            sizes = {"default": default.split(), "hardened": hardened.split()}
            outcomes[name] = (sizes, words)
    return outcomes


def run(program, library, name, size):
    environment = dict(os.environ, LD_PRELOAD=str(library))
    try:
        result = subprocess.run([program, name, size], env=environment, capture_output=True,
                                text=True, errors="replace", timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"none after {SECONDS} s", ""
    return result.returncode, result.stderr


def complaint(kind, outcomes, name, size, status, errors):
    """What is wrong with the outcome of one mistake; nothing if all is well."""
    sizes, words = outcomes[name]
    if kind != "debug":
        noticed = status == -signal.SIGABRT and errors.startswith("tcmalloc: ")
        if kind == "hardened":
            noticed = noticed or status in FAULTS
        promised = size in sizes[kind] or "all" in sizes[kind]
        return "not noticed" if promised and not noticed else ""
    if words == "fault":
        return "" if status in FAULTS else f"status {status} instead of a fault"
    if status != -signal.SIGABRT:
        return f"status {status} instead of an abort"
    first = errors.splitlines()[0] if errors else ""
    if not first.startswith("tcmalloc: ") or words not in first:
        return f"unexpected message: {first}"
    if errors.count("tcmalloc: ") != 1:
        return "more than one message"
    if "    @ 0x" not in errors:
        return "no stack"
    return ""


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", required=True)
    parser.add_argument("--library", required=True)
    parser.add_argument("--kind", choices=["default", "hardened", "debug"], required=True)
    parser.add_argument("--survey", action="store_true", help="prints what happens instead, and how many end; --library '' is libc")
    arguments = parser.parse_args()
    outcomes = read_outcomes(pathlib.Path(__file__).with_name("outcomes.txt"))
    listing = subprocess.run([arguments.program, "--list"], check=True, capture_output=True,
                             text=True, timeout=SECONDS).stdout
    cases = [line.split() for line in listing.splitlines()]
    failures = [f"{name} is in outcomes.txt alone"
                for name in outcomes.keys() - {name for name, _ in cases}]
    failures += [f"{name} is not in outcomes.txt"
                 for name in sorted({name for name, _ in cases} - outcomes.keys())]
    cases = [case for case in cases if case[0] in outcomes]
    endings = collections.Counter()
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        results = pool.map(lambda case: run(arguments.program, arguments.library, *case), cases)
        for (name, size), (status, errors) in zip(cases, results):
            if arguments.survey:
                print(name, size, status, errors.split("\n")[0], sep="\t")
                endings["abort" if status == -signal.SIGABRT else "fault" if status in FAULTS else "other"] += 1
                continue
            wrong = complaint(arguments.kind, outcomes, name, size, status, errors)
            if wrong:
                failures.append(f"{name} {size}: {wrong}")
    if arguments.survey:
        print(f"of {len(cases)}, ended by abort: {endings['abort']}, by a fault: {endings['fault']}")
        return 0
    print("\n".join(failures) or f"{len(cases)} mistakes, as promised")
    return 1 if failures or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
