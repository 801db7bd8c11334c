#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares what HEAPPROFILE costs under two allocators: runs a program under each in turn, several
times, and prints the medians, the ratios and what the profiles say was allocated.

    compare.py --ours build/release/lib/libtcmalloc.so.4 [--theirs LIBRARY] PROGRAM [ARGUMENT...]
"""

import argparse
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time

HEAD = re.compile(r"heap profile: +\d+: +\d+ \[ *(\d+): +(\d+)\]")


def run(command, library, folder, profiled):
    """Returns wall time, processor time and the totals of the last profile."""
    environment = {**os.environ, "LD_PRELOAD": library}
    if profiled:
        environment["HEAPPROFILE"] = os.path.join(folder, "p")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    start = time.monotonic()
    subprocess.run(command, env=environment, check=True, stderr=subprocess.DEVNULL)
    wall = time.monotonic() - start
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    totals = None
    if profiled:
        last = sorted(name for name in os.listdir(folder) if name.endswith(".heap"))[-1]
        with open(os.path.join(folder, last), encoding="utf-8") as file:
            totals = tuple(int(number) for number in HEAD.match(file.readline()).groups())
    return wall, processor, totals


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ours", required=True)
    parser.add_argument("--theirs", default="/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    kinds = {"theirs": (arguments.theirs, True), "ours": (arguments.ours, True),
             "ours, no profile": (os.path.realpath(arguments.ours), False)}
    results = {kind: [] for kind in kinds}
    for _ in range(arguments.rounds):
        for kind, (library, profiled) in kinds.items():
            with tempfile.TemporaryDirectory(prefix="tcm-heap-profile-") as folder:
                results[kind].append(run(arguments.command, library, folder, profiled))
    print("| | wall s | processor s | allocations | bytes |\n|---|---|---|---|---|")
    medians = {}
    for kind, rows in results.items():
        wall, processor = (statistics.median(row[i] for row in rows) for i in (0, 1))
        medians[kind] = wall, processor
        totals = {row[2] for row in rows if row[2]}
        told = "| ".join(str(n) for n in max(totals)) if totals else "|"
        print(f"| {kind} | {wall:.2f} | {processor:.2f} | {told} |")
    ratios = [ours / theirs for ours, theirs in zip(medians["ours"], medians["theirs"])]
    print(f"| ours / theirs | {ratios[0]:.3f} | {ratios[1]:.3f} | | |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
