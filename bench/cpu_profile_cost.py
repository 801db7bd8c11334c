#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures what CPU profiling costs: runs of programs with and without it, in pairs.

    bench/cpu_profile_cost.py [--build build/release] [--frequency HZ]... [--pairs N] [COMMAND...]

Without a command it runs some programs that compute. The order within a pair alternates. Prints a table: the median of the
pairs' ratios of CPU time, user and system, and their quartiles. On a machine with other load the quartiles tell what
the median is worth.
"""

import argparse
import os
import pathlib
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
RECURSION = "def f(n): return n if n < 2 else f(n - 1) + f(n - 2)\nf(31)"
SQL = ("with recursive c(x) as (select 1 union all select x + 1 from c where x < 1600000) "
       "select sum(x * 7919 % 1000), count(distinct x % 977) from c")

# {bin} is the folder of the workloads, {big} a file of 24 MiB.
PROGRAMS = {
    "bignum": ["{bin}/bignum"],
    "cube_cover": ["{bin}/cube_cover", "--functions=60000"],
    "binary_trees": ["{bin}/binary_trees", "--threads=1", "--rounds=40"],
    "python, recursion": ["/usr/bin/python3", "-S", "-c", RECURSION],
    "perl, hashes": ["/usr/bin/perl", "-e", "$h{$_ % 5000} .= chr(65 + $_ % 26) for 1..4000000"],
    "sqlite": ["/usr/bin/sqlite3", ":memory:", SQL],
    "gzip": ["/usr/bin/gzip", "-c", "-6", "{big}"],
}


def cpu_seconds(command, environment):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, env=environment, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime


def measure(command, library, frequency, pairs, folder):
    """Returns the ratios of the pairs, and the median CPU time without a profile."""
    plain = {**os.environ, "LD_PRELOAD": str(library)}
    profiled = {**plain, "CPUPROFILE": f"{folder}/cpu.prof", "CPUPROFILE_FREQUENCY": str(frequency)}
    ratios = []
    times = []
    for pair in range(pairs):
        order = [plain, profiled] if pair % 2 == 0 else [profiled, plain]
        seconds = {id(one): cpu_seconds(command, one) for one in order}
        ratios.append(seconds[id(profiled)] / seconds[id(plain)])
        times.append(seconds[id(plain)])
    return ratios, statistics.median(times)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--frequency", type=int, action="append", help="samples per second (100 and 1000)")
    parser.add_argument("--pairs", type=int, default=15)
    parser.add_argument("command", nargs="*")
    arguments = parser.parse_args()
    build = arguments.build.resolve()
    programs = {arguments.command[0]: arguments.command} if arguments.command else PROGRAMS
    medians = {}
    print("| program | CPU s | Hz | times as much with a profile | quartiles | pairs |\n|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tcm_cpu_cost_") as folder:
        big = pathlib.Path(folder) / "big"
        big.write_bytes(b"".join(b"%d and %d\n" % (i, i * i % 997) for i in range(1_600_000)))
        places = {"bin": build / "bin/workloads", "big": big}
        for name, words in programs.items():
            command = [word.format(**places) if word.startswith("{") else word for word in words]
            if shutil.which(command[0]) is None:
                continue
            for frequency in arguments.frequency or [100, 1000]:
                ratios, seconds = measure(command, build / "lib/libprofiler.so.0", frequency, arguments.pairs, folder)
                low, median, high = statistics.quantiles(ratios, n=4)
                medians.setdefault(frequency, []).append(median)
                print(f"| {name} | {seconds:.2f} | {frequency} | {median:.4f} | {low:.4f} to {high:.4f} | "
                      f"{len(ratios)} |", flush=True)
    for frequency, values in medians.items():
        print(f"\n{frequency} Hz: {statistics.geometric_mean(values):.4f} in the geometric mean of {len(values)} programs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
