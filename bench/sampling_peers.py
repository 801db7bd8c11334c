#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares what sampling costs under several allocators: runs of a program with and without it, in pairs.

    bench/sampling_peers.py --library ours=build/release/lib/libtcmalloc.so.4 \\
        --library gperftools=/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4 \\
        --library jemalloc=/usr/lib/x86_64-linux-gnu/libjemalloc.so.2 -- build/release/bin/workloads/json_like

The order within a pair alternates, and the allocators take turns. Prints for each the median of the pairs'
ratios of CPU time, their quartiles, and the ratio of the peaks of memory. google/tcmalloc has no variable that
switches its sampling, so that it cannot be compared in this way.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys


def settings(kind, interval):
    """The environments without and with sampling."""
    if kind in ("ours", "gperftools"):
        return [{"TCMALLOC_SAMPLE_PARAMETER": str(value)} for value in (0, interval)]
    logarithm = (interval - 1).bit_length()
    return [{"MALLOC_CONF": "prof:false"}, {"MALLOC_CONF": f"prof:true,lg_prof_sample:{logarithm}"}]


def measure(command, library, environment):
    """CPU seconds and peak resident KiB of a run."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL,
                               env={**os.environ, "LD_PRELOAD": str(library), **environment})
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command[0]} under {library} ended with status {process.returncode}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss


def named_library(text):
    kind, _, path = text.partition("=")
    if kind not in ("ours", "gperftools", "jemalloc") or not pathlib.Path(path).is_file():
        raise argparse.ArgumentTypeError(f"{text}: expected ours, gperftools or jemalloc, =, and a library")
    return kind, pathlib.Path(path).resolve()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=named_library, action="append", required=True,
                        help="ours=PATH, gperftools=PATH or jemalloc=PATH")
    parser.add_argument("--interval", type=int, default=512 << 10, help="mean bytes between samples")
    parser.add_argument("--pairs", type=int, default=11)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    ratios = {library: ([], []) for library in arguments.library}
    for pair in range(arguments.pairs):
        for kind, library in arguments.library:
            plain, sampled = settings(kind, arguments.interval)
            order = [plain, sampled] if pair % 2 == 0 else [sampled, plain]
            results = {id(one): measure(arguments.command, library, one) for one in order}
            for index, values in enumerate(ratios[kind, library]):
                values.append(results[id(sampled)][index] / max(results[id(plain)][index], 1e-9))
    for (kind, _), (seconds, peaks) in ratios.items():
        low, median, high = statistics.quantiles(seconds, n=4)
        print(f"{kind}: CPU time x {median:.4f}, quartiles {low:.4f} and {high:.4f}; "
              f"peak memory x {statistics.median(peaks):.4f}; {len(seconds)} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
