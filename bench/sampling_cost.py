#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Says what the default sampling costs, from the results of bench/sampling_cost.sh.

    bench/sampling_cost.py OUT/samples.json OUT/peaks.json

Peak memory is that of bench/exact_peaks.py, a median for each library. Each round has a run with the full library and one with the minimal library, and their quotient; what counts for
a workload otherwise is the median of its quotients. Prints the geometric means over the workloads, those that lie above the
bound of 3 %, and the whole table, with the quartiles of the quotients of time: where these lie far apart, the median
says little.
"""

import json
import math
import statistics
import sys

FIGURES = {"time": "seconds", "CPU time": "cpu_seconds", "peak memory": None}
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


def main():
    if len(sys.argv) != 3:
        print(__doc__, file=sys.stderr)
        return 2
    with open(sys.argv[1], encoding="utf-8") as file:
        results = json.load(file)
    with open(sys.argv[2], encoding="utf-8") as file:
        peaks = json.load(file)
    rows = []
    for workload in results["workloads"]:
        row = {}
        for name, column in FIGURES.items():
            # A workload about memory runs for as long as it is told to.
            if "memory" in workload["workload"].get("tags", []):
                continue
            values = quotients(workload, results["columns"], column) if column else []
            if len(values) > 1:
                row[name] = statistics.quantiles(values, n=4)
        minimal, full = peaks.get(workload["workload"]["name"], ([], []))
        if minimal and full:
            row["peak memory"] = [0, statistics.median(full) / statistics.median(minimal), 0]
        rows.append((workload["workload"]["name"], row))
    for name in FIGURES:
        medians = [row[name][1] for _, row in rows if name in row]
        if medians:
            mean = math.exp(statistics.fmean(math.log(median) for median in medians))
            print(f"{name}: x {mean:.4f} in the geometric mean of {len(medians)} workloads")
    for name in ("time", "peak memory"):
        above = [f"{workload} ({row[name][1]:.3f})" for workload, row in rows
                 if name in row and row[name][1] > BOUND]
        print(f"more than 3 % {name}: {', '.join(above) or 'none'}")
    print("\n| workload | time | its quartiles | CPU time | peak memory |\n|---|---|---|---|---|")
    for workload, row in rows:
        median = {name: f"{row[name][1]:.3f}" if name in row else "" for name in FIGURES}
        spread = f"{row['time'][0]:.3f} to {row['time'][2]:.3f}" if "time" in row else ""
        print(f"| {workload} | {median['time']} | {spread} | {median['CPU time']} | {median['peak memory']} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
