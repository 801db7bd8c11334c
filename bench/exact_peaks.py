#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the peak memory of workloads under two libraries to the page.

    bench/exact_peaks.py --build BUILD --rounds N [--workloads NAME,...] SAMPLES LIBRARY LIBRARY

Runs the workloads of a samples.json of tcm bench, under both libraries in turn. What wait4 reports of a process lacks up
to some hundred KiB, because the kernel keeps counts of pages for each CPU and adds them up in steps. So each process
is stopped where it exits, and its VmHWM is read, for which kernels since 6.17 add up everything. Of several processes
of a workload the largest one counts. Writes JSON: for each workload and library the peaks in bytes.
"""

import argparse
import json
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "scripts"))

# pylint: disable=wrong-import-position
import traced

WAIT_ALL = 0x40000000  # __WALL: threads and clones of any kind


def high_water(process):
    """Returns the most bytes that were resident; 0 if the process has no memory any more."""
    with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def run(command, environment):
    """Returns the peak of the largest process, or None if the program fails."""
    first = traced.start(command, environment, traced.TRACE_EXIT | traced.TRACE_PROCESSES, quiet=True)
    if first is None:
        return None
    traced.go_on(first)
    known = {first}
    peak = 0
    failed = False
    while True:
        try:
            process, status = os.waitpid(-1, WAIT_ALL)
        except ChildProcessError:
            return None if failed else peak
        if not os.WIFSTOPPED(status):
            failed |= process == first and status != 0
            continue
        event = status >> 16
        delivered = 0
        if event == traced.PTRACE_EVENT_EXIT:
            peak = max(peak, high_water(process))
        elif event == 0 and (process in known or os.WSTOPSIG(status) != signal.SIGSTOP):
            delivered = os.WSTOPSIG(status)  # but not the stop with which a new process begins
        known.add(process)
        traced.go_on(process, delivered)


def command_of(workload, build):
    data = str(build / "bench-data")
    words = workload.get("command") or [str(build / "bin/workloads" / workload["program"])]
    return [word.replace("{data}", data) for word in [*words, *workload["args"]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--workloads", type=lambda names: names.split(","), help="only these of the samples")
    parser.add_argument("samples", type=pathlib.Path)
    parser.add_argument("libraries", type=pathlib.Path, nargs=2)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    libraries = [library.resolve() for library in arguments.libraries]
    peaks = {}
    for entry in json.loads(arguments.samples.read_text(encoding="utf-8"))["workloads"]:
        workload = entry["workload"]
        if arguments.workloads and workload["name"] not in arguments.workloads:
            continue
        rows = [[], []]
        for _ in range(arguments.rounds):
            for row, library in zip(rows, libraries):
                peak = run(command_of(workload, build), {**os.environ, "LD_PRELOAD": str(library)})
                if peak is None:
                    print(f"{workload['name']} failed under {library}", file=sys.stderr)
                else:
                    row.append(peak)
        peaks[workload["name"]] = rows
    json.dump(peaks, sys.stdout)
    return 0


if __name__ == "__main__":
    sys.exit(main())
