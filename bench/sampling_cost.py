#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Says what the default sampling costs, from the results of bench/sampling_cost.sh.

    bench/sampling_cost.py [--above time|peak] --samples FILE... [--peaks FILE...]

Each round has a run with the full library and one with the minimal library, and their quotient of time; what counts
for a workload is the median of its quotients. What counts of the peaks, which bench/exact_peaks.py measures, is the
quotient of the medians. Of several files the last one that has a workload counts. Prints the geometric means over the
workloads, those that lie above the bound of 3 %, and the whole table, with the quartiles of the quotients of time: where
these lie far apart, the median says little. --above prints nothing but the names of those above the bound in one of them,
joined by commas.
"""

import argparse
import json
import math
import statistics
import sys

TIMES = {"time": "seconds", "CPU time": "cpu_seconds"}
PEAK = "peak memory"
ABOVE = {"time": "time", "peak": PEAK}
BOUND = 1.03


def quotients(workload, columns, figure):
    """The quotients of the rounds in which both have the figure."""
    at = columns.index(figure)
    runs = {cell["allocator"]: {run[0]: run[at] for run in cell.get("runs", [])}
            for cell in workload["cells"]}
    minimal = runs.pop("ours", {})
    if len(runs) != 1:
        return []
    full = next(iter(runs.values()))
    return [full[r] / minimal[r] for r in sorted(minimal.keys() & full.keys()) if minimal[r] and full[r]]


def add_times(rows, results):
    """Sets the rows' quotients of time and their spread; leaves those that the results lack."""
    for workload in results["workloads"]:
        row = rows.setdefault(workload["workload"]["name"], {})
        # A workload about memory runs for as long as it is told to.
        if "memory" in workload["workload"].get("tags", []):
            continue
        for name, column in TIMES.items():
            values = quotients(workload, results["columns"], column)
            if len(values) > 1:
                first, row[name], third = statistics.quantiles(values, n=4)
                if name == "time":
                    row["spread"] = f"{first:.3f} to {third:.3f}"


def add_peaks(rows, peaks):
    for workload, (minimal, full) in peaks.items():
        if minimal and full:
            rows.setdefault(workload, {})[PEAK] = statistics.median(full) / statistics.median(minimal)


def above(rows, name):
    return [workload for workload, row in rows.items() if row.get(name, 0) > BOUND]


def print_table(rows):
    for name in (*TIMES, PEAK):
        figures = [row[name] for row in rows.values() if name in row]
        if figures:
            mean = math.exp(statistics.fmean(math.log(figure) for figure in figures))
            print(f"{name}: x {mean:.4f} in the geometric mean of {len(figures)} workloads")
    for name in ("time", PEAK):
        found = [f"{workload} ({rows[workload][name]:.3f})" for workload in above(rows, name)]
        print(f"more than 3 % {name}: {', '.join(found) or 'none'}")
    print("\n| workload | time | its quartiles | CPU time | peak memory |\n|---|---|---|---|---|")
    for workload, row in rows.items():
        shown = {name: f"{row[name]:.3f}" if name in row else "" for name in (*TIMES, PEAK)}
        print(f"| {workload} | {shown['time']} | {row.get('spread', '')} | {shown['CPU time']} | {shown[PEAK]} |")


def read(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--above", choices=ABOVE, help="print only the names of the workloads above 3 %% in this figure")
    parser.add_argument("--samples", nargs="+", required=True, help="results of tcm bench")
    parser.add_argument("--peaks", nargs="+", default=[], help="results of bench/exact_peaks.py")
    arguments = parser.parse_args()
    rows = {}
    for path in arguments.samples:
        add_times(rows, read(path))
    for path in arguments.peaks:
        add_peaks(rows, read(path))
    if arguments.above:
        print(",".join(above(rows, ABOVE[arguments.above])))
    else:
        print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
