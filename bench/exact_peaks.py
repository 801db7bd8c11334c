#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures the peak memory of workloads under two libraries to the page.

    bench/exact_peaks.py --build BUILD --rounds N SAMPLES LIBRARY LIBRARY

Runs the workloads of a samples.json of tcm bench, under both libraries in turn. What wait4 reports of a process lacks up
to some hundred KiB, because the kernel keeps counts of pages for each CPU and adds them up in steps. So each process
is stopped where it exits, and its VmHWM is read, for which kernels since 6.17 add up everything. Of several processes
of a workload the largest one counts. Writes JSON: for each workload and library the peaks in bytes.
"""

import argparse
import ctypes
import json
import os
import pathlib
import signal
import sys

PTRACE_TRACEME = 0
PTRACE_CONT = 7
PTRACE_SETOPTIONS = 0x4200
PTRACE_O_TRACEFORK = 0x02
PTRACE_O_TRACEVFORK = 0x04
PTRACE_O_TRACEEXEC = 0x10
PTRACE_O_TRACEEXIT = 0x40
PTRACE_O_EXITKILL = 0x100000
PTRACE_EVENT_EXIT = 6
WAIT_ALL = 0x40000000  # __WALL: threads and clones of any kind

libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def start(command, environment):
    """Starts a program that stops before its first instruction, with its output thrown away."""
    child = os.fork()
    if child == 0:
        nothing = os.open("/dev/null", os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nothing, descriptor)
        try:
            if libc.ptrace(PTRACE_TRACEME, 0, None, None) == 0:
                os.execvpe(command[0], command, environment)
        finally:
            os._exit(127)
    _, status = os.waitpid(child, 0)
    if not os.WIFSTOPPED(status):
        raise OSError(f"cannot trace {command[0]}")
    libc.ptrace(PTRACE_SETOPTIONS, child, None,
                PTRACE_O_TRACEEXIT | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK | PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL)
    return child


def high_water(process):
    """Returns the most bytes that were resident; 0 if the process has no memory any more."""
    with open(f"/proc/{process}/status", encoding="ascii", errors="replace") as lines:
        for line in lines:
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    return 0


def run(command, environment):
    """Returns the peak of the largest process, or None if the program fails."""
    first = start(command, environment)
    libc.ptrace(PTRACE_CONT, first, None, 0)
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
        if event == PTRACE_EVENT_EXIT:
            peak = max(peak, high_water(process))
        elif event == 0 and process in known:
            delivered = os.WSTOPSIG(status)
        elif event == 0 and os.WSTOPSIG(status) != signal.SIGSTOP:
            delivered = os.WSTOPSIG(status)
        known.add(process)
        libc.ptrace(PTRACE_CONT, process, None, delivered)


def command_of(workload, build):
    data = str(build / "bench-data")
    words = workload.get("command") or [str(build / "bin/workloads" / workload["program"])]
    return [word.replace("{data}", data) for word in [*words, *workload["args"]]]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("samples", type=pathlib.Path)
    parser.add_argument("libraries", type=pathlib.Path, nargs=2)
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    libraries = [library.resolve() for library in arguments.libraries]
    peaks = {}
    for entry in json.loads(arguments.samples.read_text(encoding="utf-8"))["workloads"]:
        workload = entry["workload"]
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
