#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Counts locks and writes to shared cache lines in workloads, for each front end.

    measure.py --build build/release --out bench/results/NAME
        builds the instrumented library, runs everything, writes table.md and counts.json

docs/subsystems/tools-and-benchmarks.md says what is counted.
"""

import argparse
import collections
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

THREADS = (2, 8, 64)
FRONT_ENDS = ("per_thread", "per_cpu", "auto")
PLACES = 8

# Enough operations that starting up does not count, for each number of threads.
WORKLOADS = {
    "tight": lambda n: ["tight", f"--threads={n}", "--ops=4000000"],
    "producer_consumer": lambda n: [
        "producer_consumer", f"--producers={n // 2}", f"--consumers={n // 2}", "--ops=2000000"],
    "larson": lambda n: [
        "larson", f"--threads={n}", "--generations=20", f"--ops={2000000 // (20 * n)}"],
    "cross_free": lambda n: ["cross_free", f"--threads={n}", "--rate=50", "--ops=2000000"],
    "t_test1": lambda n: ["t_test1", f"--threads={n}", f"--ops={2000000 // n}"],
    "mixed_sizes": lambda n: ["mixed_sizes", f"--threads={n}", "--bursts=50000"],
    "phone_book": lambda n: ["phone_book", f"--threads={n}"],
    "thread_churn": lambda n: ["thread_churn", f"--threads={n}", "--lives=5000"],
}
# Allocations in what the program counts as one operation, where that is not one.
ALLOCATIONS = {"phone_book": 23, "thread_churn": 200}


class Failure(Exception):
    pass


def build(directory):
    command = ["cmake", "--build", str(directory), "--target", "contention"]
    subprocess.run(command, check=True, stdout=sys.stderr)


def run(directory, front_end, arguments):
    """One run: the workload's result and the library's counts."""
    program = directory / "bin" / "workloads" / arguments[0]
    library = directory / "lib" / "libtcmalloc_contention.so"
    with tempfile.NamedTemporaryFile() as report:
        environment = dict(os.environ, LD_PRELOAD=str(library), TCMALLOC_FRONT_END=front_end,
                           CONTENTION_REPORT=report.name)
        done = subprocess.run([str(program), *arguments[1:]], env=environment, text=True,
                              stdout=subprocess.PIPE, timeout=600)
        counts = report.read()
    if done.returncode != 0 or not counts:
        raise Failure(f"{' '.join(arguments)} ended with {done.returncode}")
    return json.loads(done.stdout.splitlines()[-1]), json.loads(counts)


def function_at(library, offsets):
    """The innermost function and line at each offset in the library."""
    command = ["addr2line", "-fCsi", "-e", str(library), "-a"]
    # A return address is behind the call, perhaps in the next line.
    command += [hex(int(offset, 16) - 1) for offset in offsets]
    names, current = {}, None
    done = subprocess.run(command, check=True, text=True, stdout=subprocess.PIPE)
    for line in done.stdout.splitlines():
        if line.startswith("0x"):
            current = hex(int(line, 16) + 1)
            names[current] = []
        else:
            names[current].append(line)
    return {offset: describe(frames) for offset, frames in names.items()}


def describe(frames):
    """The first function that is not the library's of C++, as `name (file)`."""
    pairs = list(zip(frames[::2], frames[1::2]))
    ours = [pair for pair in pairs if "std::" not in pair[0] and "SpinLock" not in pair[0]]
    name, place = (ours or pairs)[0]
    name = name.split("(")[0]
    while "<" in name and not name.endswith("operator<"):
        head, _, tail = name.partition("<")
        name = head + tail.rpartition(">")[2]
    lock = ", its lock" if any("SpinLock" in pair[0] for pair in pairs) else ""
    name = name.split("::")[-1].removeprefix("__wrap_tcmalloc_")
    return f"{name}{lock} ({place.split(':')[0]})"


def top_places(library, places, allocations):
    names = function_at(library, places) if places else {}
    sums = collections.Counter()
    for offset, count in places.items():
        sums[names[hex(int(offset, 16))]] += count
    return {name: 1000 * count / allocations for name, count in sums.most_common(PLACES)}


def measure(directory, name, threads, front_end):
    result, counts = run(directory, front_end, WORKLOADS[name](threads))
    allocations = result["ops"] * ALLOCATIONS.get(name, 1)
    locks = {rank: [1000 * n / allocations for n in pair] for rank, pair in counts["locks"].items()}
    library = directory / "lib" / "libtcmalloc_contention.so"
    return {
        "workload": name,
        "threads": threads,
        "front_end": front_end,
        "allocations": allocations,
        "arguments": WORKLOADS[name](threads),
        "locks": sum(pair[0] for pair in locks.values()),
        "waits": sum(pair[1] for pair in locks.values()),
        "shared_by_threads": 1000 * counts["shared_by_threads"] / allocations,
        "shared_by_cpus": 1000 * counts["shared_by_cpus"] / allocations,
        "displaced": 1000 * counts["displaced"] / allocations,
        "locks_by_rank": {rank: pair for rank, pair in locks.items() if pair[0] > 0},
        "places": top_places(library, counts["places"], allocations),
    }


def figure(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def table(results):
    lines = [
        "| workload | threads | front end | locks | waits | shared writes | between CPUs "
        "| locks by rank |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in results:
        ranks = sorted(row["locks_by_rank"].items(), key=lambda item: -item[1][0])
        ranks = ", ".join(f"{rank} {figure(pair[0])}"
                          for rank, pair in ranks[:3] if pair[0] >= 0.005)
        columns = [row["workload"], row["threads"], row["front_end"]]
        columns += [figure(row[key])
                    for key in ("locks", "waits", "shared_by_threads", "shared_by_cpus")]
        lines.append("| " + " | ".join(map(str, [*columns, ranks])) + " |")
    return "\n".join(lines) + "\n"


def places_table(results):
    lines = ["| workload | threads | front end | where, shared writes |", "|---|---|---|---|"]
    for row in results:
        places = "; ".join(f"{name} {figure(count)}"
                           for name, count in list(row["places"].items())[:5] if count >= 0.05)
        if places:
            columns = [row["workload"], row["threads"], row["front_end"], places]
            lines.append("| " + " | ".join(map(str, columns)) + " |")
    return "\n".join(lines) + "\n"


def machine():
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        models = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
    return {"cpus": len(os.sched_getaffinity(0)),
            "model": models[0] if models else platform.machine(), "kernel": platform.release(),
            "libc": " ".join(platform.libc_ver())}


def page(results):
    about = machine()
    return (f"# Locks and shared writes for each thousand allocations\n\n{about['cpus']} CPUs "
            f"({about['model']}), Linux {about['kernel']}, {about['libc']}.\n\n"
            f"{table(results)}\n## Where the shared writes are\n\n{places_table(results)}")


def check(directory):
    """A thread alone shares nothing; a producer and a consumer share every line."""
    alone, counts = run(directory, "per_thread", ["tight", "--threads=1", "--ops=100000"])
    if counts["shared_by_threads"] > alone["ops"] / 1000:
        raise Failure(f"one thread: {counts['shared_by_threads']} shared writes")
    pair, counts = run(directory, "per_thread", [
        "producer_consumer", "--ops=100000", "--min-size=64", "--max-size=64"])
    if counts["shared_by_threads"] < pair["ops"] / 2:
        raise Failure(f"producer and consumer: only {counts['shared_by_threads']} shared writes")


def compact(results):
    """JSON with one line for each result."""
    lines = ",\n".join(json.dumps(result, separators=(",", ":")) for result in results)
    return f'{{"machine": {json.dumps(machine())},\n"results": [\n{lines}\n]}}\n'


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True,
                        help="a configured build folder")
    parser.add_argument("--out", type=pathlib.Path, help="folder for table.md and counts.json")
    parser.add_argument("--workloads", default=",".join(WORKLOADS), help="names, comma-separated")
    options = parser.parse_args()

    build(options.build)
    check(options.build)
    results = []
    for name in options.workloads.split(","):
        for threads in THREADS:
            for front_end in FRONT_ENDS:
                print(f"{name}, {threads} threads, {front_end}", file=sys.stderr)
                results.append(measure(options.build, name, threads, front_end))
    print(page(results), end="")
    if options.out:
        options.out.mkdir(parents=True, exist_ok=True)
        (options.out / "table.md").write_text(page(results), encoding="utf-8")
        (options.out / "counts.json").write_text(compact(results), encoding="utf-8")


if __name__ == "__main__":
    try:
        main()
    except Failure as failure:
        sys.exit(f"measure.py: {failure}")
