#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Says what the default sampling costs, from the results of bench/sampling_cost.sh.

    bench/sampling_cost.py OUT/samples.json OUT/peaks.json

Each round has a run with the full library and one with the minimal library, and their quotient of time; what counts
for a workload is the median of its quotients. What counts of the peaks, which bench/exact_peaks.py measures, is the
quotient of the medians. Prints the geometric means over the workloads, those that lie above the bound of 3 %, and the
whole table, with the quartiles of the quotients of time: where these lie far apart, the median says little.
"""

import json
import math
import statistics
import sys

TIMES = {"time": "seconds", "CPU time": "cpu_seconds"}
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
        spread = ""
        # A workload about memory runs for as long as it is told to.
        if "memory" not in workload["workload"].get("tags", []):
            for name, column in TIMES.items():
                values = quotients(workload, results["columns"], column)
                if len(values) > 1:
                    first, row[name], third = statistics.quantiles(values, n=4)
                    if name == "time":
                        spread = f"{first:.3f} to {third:.3f}"
        minimal, full = peaks.get(workload["workload"]["name"], ([], []))
        if minimal and full:
            row["peak memory"] = statistics.median(full) / statistics.median(minimal)
        rows.append((workload["workload"]["name"], row, spread))
    for name in (*TIMES, "peak memory"):
        figures = [row[name] for _, row, _ in rows if name in row]
        if figures:
            mean = math.exp(statistics.fmean(math.log(figure) for figure in figures))
            print(f"{name}: x {mean:.4f} in the geometric mean of {len(figures)} workloads")
    for name in ("time", "peak memory"):
        above = [f"{workload} ({row[name]:.3f})" for workload, row, _ in rows if row.get(name, 0) > BOUND]
        print(f"more than 3 % {name}: {', '.join(above) or 'none'}")
    print("\n| workload | time | its quartiles | CPU time | peak memory |\n|---|---|---|---|---|")
    for workload, row, spread in rows:
        shown = {name: f"{figure:.3f}" for name, figure in row.items()}
        print(f"| {workload} | {shown.get('time', '')} | {spread} | {shown.get('CPU time', '')} | "
              f"{shown.get('peak memory', '')} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
