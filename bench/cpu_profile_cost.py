#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures what CPU profiling costs: runs of a program with and without it, in pairs.

The order within a pair alternates. Prints the median of the pairs' ratios of CPU time, user and
system, and their quartiles. On a machine with other load the quartiles tell what the median is
worth.
"""

import argparse
import os
import pathlib
import resource
import statistics
import subprocess
import sys
import tempfile


def cpu_seconds(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True, help="libprofiler.so.0")
    parser.add_argument("--frequency", type=int, action="append", help="samples per second (100 and 1000)")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("command", nargs="+")
    arguments = parser.parse_args()
    plain = {**os.environ, "LD_PRELOAD": str(arguments.library.resolve())}
    for frequency in arguments.frequency or [100, 1000]:
        ratios = []
        with tempfile.TemporaryDirectory(prefix="tcm_cpu_cost_") as folder:
            profiled = {**plain, "CPUPROFILE": f"{folder}/cpu.prof", "CPUPROFILE_FREQUENCY": str(frequency)}
            for pair in range(arguments.pairs):
                order = [plain, profiled] if pair % 2 == 0 else [profiled, plain]
                seconds = {id(one): cpu_seconds(arguments.command, one) for one in order}
                ratios.append(seconds[id(profiled)] / seconds[id(plain)])
        low, median, high = statistics.quantiles(ratios, n=4)
        print(f"{frequency} Hz: CPU time x {median:.4f}, quartiles {low:.4f} and {high:.4f}, {len(ratios)} pairs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
