#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares what sampling costs under several allocators: runs of programs with and without it, in pairs.

    bench/sampling_peers.py --library ours=build/release/lib/libtcmalloc.so.4 \\
        --library gperftools=/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4 \\
        --library jemalloc=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2

The order within a pair alternates, and the allocators take turns. Prints for each program and allocator the median
of the pairs' quotients of CPU time, their quartiles, and the median quotient of the peaks of memory, and geometric
means over the programs. The programs are some workloads, or those that --command names; with the workloads it takes
about four minutes. google/tcmalloc has no variable that switches its sampling, so that it cannot be compared in this way.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import statistics
import subprocess
import sys

# Each takes a second or less.
WORKLOADS = ["json_like --documents=2800", "string_map --ops=1200000", "mixed_sizes --bursts=400000",
             "random_blocks --ops=40000000 --max-size=1024", "binary_trees --rounds=150"]


def settings(kind, interval):
    """The environments without and with sampling."""
    if kind in ("ours", "gperftools"):
        return [{"TCMALLOC_SAMPLE_PARAMETER": str(value)} for value in (0, interval)]
    logarithm = (interval - 1).bit_length()
    return [{"MALLOC_CONF": "prof:false"}, {"MALLOC_CONF": f"prof:true,lg_prof_sample:{logarithm}"}]


def measure(launcher, command, library, environment):
    """CPU seconds and peak resident KiB of a run. A small program starts it, because the kernel counts what the
    starter has resident as well."""
    settings_of = [f"LD_PRELOAD={library}", *(f"{name}={value}" for name, value in environment.items())]
    result = subprocess.run([launcher, *(word for one in settings_of for word in ("--set", one)), "--fd", "2", "--",
                             *command], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if result.returncode != 0:
        sys.exit(f"{command[0]} under {library} ended with status {result.returncode}\n{result.stderr}")
    cost = json.loads(result.stderr.splitlines()[-1])
    return (cost["user_us"] + cost["system_us"]) / 1e6, cost["max_rss_kib"]


def named_library(text):
    kind, _, path = text.partition("=")
    if kind not in ("ours", "gperftools", "jemalloc") or not pathlib.Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text}: expected ours, gperftools or jemalloc, =, and a library")
    return kind, pathlib.Path(path).resolve()


def compare(launcher, command, libraries, interval, pairs):
    """The quotients of CPU time and of peaks of each library."""
    quotients = {library: ([], []) for library in libraries}
    for pair in range(pairs):
        for kind, library in libraries:
            plain, sampled = settings(kind, interval)
            order = [plain, sampled] if pair % 2 == 0 else [sampled, plain]
            results = {id(one): measure(launcher, command, library, one) for one in order}
            for index, values in enumerate(quotients[kind, library]):
                values.append(results[id(sampled)][index] / max(results[id(plain)][index], 1e-9))
    return quotients


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=named_library, action="append", required=True,
                        help="ours=PATH, gperftools=PATH or jemalloc=PATH")
    parser.add_argument("--build", type=pathlib.Path, default=pathlib.Path("build/release"),
                        help="the build that has the workloads and tcm_launch")
    parser.add_argument("--command", action="append", help="a program with its arguments, in one word")
    parser.add_argument("--interval", type=int, default=512 << 10, help="mean bytes between samples")
    parser.add_argument("--pairs", type=int, default=9)
    arguments = parser.parse_args()
    workloads = [f"{arguments.build}/bin/workloads/{workload}" for workload in WORKLOADS]
    medians = {}
    print("| program | allocator | CPU time | its quartiles | peak memory |\n|---|---|---|---|---|")
    for command in arguments.command or workloads:
        found = compare(arguments.build / "bin/tcm_launch", shlex.split(command), arguments.library, arguments.interval, arguments.pairs)
        for (kind, _), (seconds, peaks) in found.items():
            low, median, high = statistics.quantiles(seconds, n=4)
            peak = statistics.median(peaks)
            medians.setdefault(kind, []).append((median, peak))
            print(f"| {os.path.basename(command)} | {kind} | {median:.3f} | {low:.3f} to {high:.3f} | {peak:.3f} |",
                  flush=True)
    for kind, rows in medians.items():
        seconds, peak = (math.exp(statistics.fmean(math.log(row[i]) for row in rows)) for i in (0, 1))
        print(f"| geometric mean | {kind} | {seconds:.3f} | | {peak:.3f} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
