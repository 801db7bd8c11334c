#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs workloads under our debug libraries and under gperftools', in pairs that take turns.

Prints for each workload and library the median of the paired ratios of CPU time, ours over theirs,
with the least and the most. gperftools' libraries are those of a directory, such as Debian's.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

LIBRARIES = ("libtcmalloc_minimal_debug.so.4", "libtcmalloc_debug.so.4")
WORKLOADS = {
    "random_blocks": ["--ops=200000"],
    "batch": ["--ops=100000"],
    "string_map": ["--ops=50000"],
    "json_like": ["--documents=20"],
    "binary_trees": ["--rounds=1"],
}


def seconds(command, library):
    environment = dict(os.environ, LD_PRELOAD=str(library))
    with subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL) as process:
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise subprocess.CalledProcessError(process.returncode, command)
    return usage.ru_utime + usage.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True, help="such as build/release")
    parser.add_argument("--theirs", type=pathlib.Path, required=True,
                        help="the directory with gperftools' libraries")
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    for name in LIBRARIES:
        ours, theirs = arguments.build / "lib" / name, arguments.theirs / name
        if not theirs.exists():
            print(f"{theirs} is not there")
            continue
        for workload, options in WORKLOADS.items():
            program = arguments.build / "bin/workloads" / workload
            if not program.exists():
                print(f"{workload} is not built")
                continue
            command = [program, *options]
            ratios = sorted(seconds(command, ours) / seconds(command, theirs)
                            for _ in range(arguments.rounds))
            print(f"{name} {workload}: {statistics.median(ratios):.2f} "
                  f"({ratios[0]:.2f} to {ratios[-1]:.2f})", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
