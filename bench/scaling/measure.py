#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures how workloads scale with threads, under several allocators, on a machine with enough CPUs.

    bench/scaling/measure.py --programs build/release/bin/workloads --seconds 300 --out DIR \\
        --library ours=build/release/lib/libtcmalloc_minimal.so.4 \\
        --library ours-per-cpu=build/release/lib/libtcmalloc_minimal.so.4,TCMALLOC_FRONT_END=per_cpu \\
        --library glibc=-

Each thread has as much to do, whatever their number, so that a perfect allocator takes the same time for all numbers of
threads. A round runs every workload with every number of threads under every library, each round in another order of
libraries; rounds go on until the seconds are over, the one that has begun is finished. Writes samples.json (operations
per second of every run) and table.md (medians), and prints the table. A run that fails is named and has no figure.
"""

import argparse
import json
import math
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import time

THREADS = (1, 2, 4, 8, 16)

# A fraction of a second each, for any number of threads. What takes producers and consumers begins with two threads.
WORKLOADS = {
    "tight": lambda n: ["tight", f"--threads={n}", f"--ops={20000000 * n}"],
    "batch": lambda n: ["batch", f"--threads={n}", "--order=mixed", "--size=8", "--max-size=120", "--batch=1000",
                        f"--ops={8000000 * n}"],
    "cross_free": lambda n: ["cross_free", f"--threads={n}", f"--ops={2000000 * n}"] if n > 1 else None,
    "producer_consumer": lambda n: ["producer_consumer", f"--producers={n // 2}", f"--consumers={n // 2}",
                                    "--queues=own", f"--ops={2000000 * n // 2}"] if n > 1 else None,
    "larson": lambda n: ["larson", f"--threads={n}", "--generations=20", "--ops=100000"],
    "thread_churn": lambda n: ["thread_churn", f"--threads={n}", f"--lives={2000 * n}"],
    "random_blocks": lambda n: ["random_blocks", f"--threads={n}", "--max-size=8192", "--realloc-percent=20",
                                f"--ops={3000000 * n}"],
    "mixed_sizes": lambda n: ["mixed_sizes", f"--threads={n}", f"--bursts={60000 * n}"],
    "t_test1": lambda n: ["t_test1", f"--threads={n}", "--max-size=8192", "--ops=1000000"],
    "binary_trees": lambda n: ["binary_trees", f"--threads={n}", "--rounds=20"],
    "string_map": lambda n: ["string_map", f"--threads={n}", f"--ops={600000 * n}"],
    "json_like": lambda n: ["json_like", f"--threads={n}", f"--documents={500 * n}"],
    "large_objects": lambda n: ["large_objects", f"--threads={n}", f"--ops={3000 * n}"],
}


def library(text):
    """NAME=PATH[,VARIABLE=VALUE...]: the name and the environment. The path - preloads nothing."""
    name, rest = text.split("=", 1)
    path, *variables = rest.split(",")
    environment = dict(variable.split("=", 1) for variable in variables)
    if path != "-":
        environment["LD_PRELOAD"] = str(pathlib.Path(path).resolve(strict=True))
    return name, environment


def operations_per_second(programs, arguments, environment):
    """The workload's own figure, None where it failed."""
    try:
        done = subprocess.run([str(programs / arguments[0]), *arguments[1:]], env=dict(os.environ, **environment),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=60)
        if done.returncode == 0:
            result = json.loads(done.stdout.splitlines()[-1])
            return result["ops"] / result["seconds"]
        message = done.stderr.strip().splitlines()[-1:] or [f"status {done.returncode}"]
    except subprocess.TimeoutExpired:
        message = ["takes more than 60 s"]
    print(f"{' '.join(arguments)} under {environment}: {message[0]}", file=sys.stderr)
    return None


def one_round(programs, workloads, threads, libraries, samples):
    for workload in workloads:
        for number in threads:
            arguments = WORKLOADS[workload](number)
            for name, environment in libraries if arguments else ():
                figure = operations_per_second(programs, arguments, environment)
                if figure is not None:
                    samples.setdefault(workload, {}).setdefault(str(number), {}).setdefault(name, []).append(figure)


def cell(samples, name):
    return f"{statistics.median(samples[name]) / 1e6:.3g}" if samples.get(name) else "-"


def means(samples, names, number):
    """Geometric means of the operations per second over the workloads, as ratios to those of the first library."""
    result = []
    for name in names:
        ratios = [statistics.median(runs[number][name]) / statistics.median(runs[number][names[0]])
                  for runs in samples.values() if runs.get(number, {}).get(name) and runs[number].get(names[0])]
        result.append(f"{math.exp(statistics.fmean(map(math.log, ratios))):.3f}" if ratios else "-")
    return result


def processor():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":", 1)[1].strip()
    return platform.machine()


def table(samples, names, rounds):
    lines = ["# Operations per second by threads", "",
             f"{os.cpu_count()} CPUs ({processor()}), Linux {platform.release()}, glibc {platform.libc_ver()[1]}; "
             f"medians of {rounds} rounds; millions of operations per second, more is better.", "",
             "| workload | threads | " + " | ".join(names) + " |", "|---" * (len(names) + 2) + "|"]
    for workload, by_threads in samples.items():
        for number, runs in by_threads.items():
            lines.append(f"| {workload} | {number} | " + " | ".join(cell(runs, name) for name in names) + " |")
    for number in sorted({number for runs in samples.values() for number in runs}, key=int):
        lines.append(f"| all, ratio to {names[0]} | {number} | " + " | ".join(means(samples, names, number)) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--programs", type=pathlib.Path, required=True, help="folder of the workloads' programs")
    parser.add_argument("--library", type=library, action="append", required=True, dest="libraries")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), type=lambda text: text.split(","))
    parser.add_argument("--threads", default=THREADS, type=lambda text: [int(number) for number in text.split(",")])
    parser.add_argument("--seconds", type=float, default=300, help="no round begins after these")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    options = parser.parse_args()
    unknown = [name for name in options.workloads if name not in WORKLOADS]
    if unknown:
        parser.error(f"no workload {unknown[0]}; there are {', '.join(WORKLOADS)}")

    options.out.mkdir(parents=True, exist_ok=True)
    names = [name for name, _ in options.libraries]
    samples, rounds, begin = {}, 0, time.monotonic()
    while rounds == 0 or time.monotonic() - begin < options.seconds:
        shift = rounds % len(options.libraries)
        one_round(options.programs, options.workloads, options.threads,
                  options.libraries[shift:] + options.libraries[:shift], samples)
        rounds += 1
        # After each round, so that what was measured is kept where a later one is cut off.
        (options.out / "samples.json").write_text(json.dumps(samples, indent=1) + "\n")
        (options.out / "table.md").write_text(table(samples, names, rounds))
    print((options.out / "table.md").read_text(), end="")


if __name__ == "__main__":
    main()
