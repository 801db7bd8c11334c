#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Reads the statistics of a program in every format: each is well formed, they tell the same to the
byte at rest, and the sums hold under load."""

import argparse
import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

MEMORY = (
    "in_use",
    "page_heap_free",
    "central_free",
    "transfer_free",
    "thread_free",
    "cpu_free",
    "metadata",
)
PLACES = ("in_use", "thread_free", "cpu_free", "transfer_free", "central_free", "untouched")
LABELS = {
    "Bytes in use by application": "in_use",
    "Bytes in page heap freelist": "page_heap_free",
    "Bytes in central cache freelist": "central_free",
    "Bytes in transfer cache freelist": "transfer_free",
    "Bytes in thread cache freelists": "thread_free",
    "Bytes in malloc metadata": "metadata",
    "Actual memory used (physical + swap)": "physical",
    "Bytes released to OS (aka unmapped)": "page_heap_returned",
    "Virtual address space used": "virtual",
    "Spans in use": "spans",
    "Thread heaps in use": "thread_caches",
    "Tcmalloc page size": "page_size",
}
# As programs that scrape gperftools' text have them.
SUM_LINE = re.compile(r"MALLOC: [ +=] +(\d+) \(( *\d+\.\d) MiB\) (.*)")
COUNT_LINE = re.compile(r"MALLOC: +(\d+) +(\S.*)")
CLASS_LINE = re.compile(
    r"class +(\d+) \[ +(\d+) bytes \] : +(\d+) objs; ( *\d+\.\d) MiB; ( *\d+\.\d) cum MiB; "
    r"( *\d+\.\d{3}) overhead MiB"
)
HEAP_LINE = re.compile(r"PageHeap: (\d+) sizes; +\d+\.\d MiB free; +\d+\.\d MiB unmapped")
RUN_LINE = re.compile(
    r" *(?:(\d+) pages|>(\d+) +large) \* +(\d+) spans ~ +\d+\.\d MiB; +\d+\.\d MiB cum; "
    r"unmapped: +\d+\.\d MiB; +\d+\.\d MiB cum"
)
ENVIRONMENTS = (
    {},
    {"TCMALLOC_PAGE_HEAP": "huge"},
    {"TCMALLOC_FRONT_END": "per_cpu"},
    {"TCMALLOC_AGGRESSIVE_DECOMMIT": "1"},
)


class Failure(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(word) for word in what))


def expect_equal(what, a, b):
    expect(a == b, what, a, "!=", b)


def sections(output):
    """The texts behind the lines "== FORMAT", in order."""
    parts = re.split(r"^== (\w+)\n", output, flags=re.MULTILINE)
    return list(zip(parts[1::2], parts[2::2]))


def mebibytes(size, width, decimals=1):
    """As gperftools prints them, by printf."""
    return f"{size / 2**20:{width}.{decimals}f}"


def check_class_table(text, classes):
    """The table that ends the text: its columns are aligned, and the figures are those of JSON."""
    title, *lines = text.splitlines()[1:]
    names = title.split()
    expect_equal("first column", names[0], "index")
    ends = [match.end() for match in re.finditer(r"\S+", title)]
    rows = []
    for line in lines:
        expect_equal(
            "columns of " + line, [match.end() for match in re.finditer(r"\S+", line)], ends
        )
        rows.append(dict(zip(names, map(int, line.split()))))
    if classes is not None:
        for row in rows:
            row.pop("index")
        expect_equal("table of classes", rows, classes)


def check_sums(report):
    """The equations that docs/statistics.md gives."""
    for name, value in report.items():
        expect(not isinstance(value, int) or value >= 0, name, value)
    expect_equal("physical", sum(report[name] for name in MEMORY), report["physical"])
    expect_equal(
        "virtual",
        report["physical"] + report["page_heap_returned"] + report["untouched"],
        report["virtual"],
    )
    expect_equal("mapped", report["mapped_bytes"] + report["metadata"], report["virtual"])
    expect_equal("live", report["in_use"], report["live_bytes"])
    expect(report["allocated_bytes"] >= report["live_bytes"], "allocated", report["allocated_bytes"])
    classes = report["size_classes"]
    expect_equal(
        "in_use",
        report["large_in_use"] + sum(of["in_use"] * of["bytes"] for of in classes),
        report["in_use"],
    )
    for place in ("thread_free", "cpu_free", "transfer_free", "untouched"):
        expect_equal(place, sum(of[place] * of["bytes"] for of in classes), report[place])
    expect_equal(
        "central_free", sum(of["external_bytes"] for of in classes), report["central_free"]
    )
    expect_equal(
        "most_internal", sum(of["most_internal_bytes"] for of in classes), report["most_internal"]
    )
    for of in classes:
        blocks = sum(of[place] for place in PLACES) * of["bytes"]
        expect(blocks <= of["span_bytes"], of)


def check_free_runs(report):
    runs = report["free_runs"]
    expect_equal("free", sum(run["free_bytes"] for run in runs), report["page_heap_free"])
    expect_equal(
        "returned", sum(run["returned_bytes"] for run in runs), report["page_heap_returned"]
    )


def check_text(text, report=None):
    """Every line is one that scrapers know; where a report is given, the figures are its.

    What gperftools has not comes last, so that a buffer of the usual size cuts nothing else.
    """
    figures = {}
    classes = {}
    heap = None
    runs = []
    cumulative = 0
    for line in text.splitlines():
        if match := SUM_LINE.fullmatch(line):
            figures[match[3]] = int(match[1])
            expect_equal("MiB of " + line, match[2], mebibytes(int(match[1]), 7))
        elif match := COUNT_LINE.fullmatch(line):
            figures[match[2]] = int(match[1])
        elif line.startswith("class "):
            match = CLASS_LINE.fullmatch(line)
            expect(match, "a line of a class:", line)
            classes[int(match[2])] = int(match[3])
            size = int(match[2]) * int(match[3])
            cumulative += size
            expect_equal("MiB of " + line, match[4], mebibytes(size, 5))
            expect_equal("cumulative MiB of " + line, match[5], mebibytes(cumulative, 5))
        elif line.startswith("PageHeap:"):
            heap = HEAP_LINE.fullmatch(line)
            expect(heap, "the line of the page heap:", line)
        elif " pages * " in line or line.startswith(">"):
            match = RUN_LINE.fullmatch(line)
            expect(match, "a line of runs:", line)
            runs.append(match)
    missing = LABELS.keys() - figures.keys()
    expect(not missing, "not in the text:", missing)
    expect(heap is not None and runs, "no lines of the page heap")
    kept, title, table = text.partition("Where the blocks of each size class are\n")
    expect(title and runs[-1][0] in kept, "the page heap's lines do not come before our own")
    expect_equal("lengths of runs", int(heap[1]), sum(1 for run in runs if run[1]))
    check_class_table(table, report and report["size_classes"])
    if report is None:
        return
    for label, name in LABELS.items():
        expect_equal(label, figures[label], report[name])
    free = {
        of["bytes"]: sum(of[place] for place in PLACES[1:5]) for of in report["size_classes"]
    }
    expect_equal("free blocks by class", classes, free)
    expect_equal(
        "runs", sum(int(run[3]) for run in runs), sum(run["count"] for run in report["free_runs"])
    )


def check_xml(text, report):
    root = ElementTree.fromstring(text.strip("\0"))
    expect_equal("root", root.tag, "malloc")
    expect_equal("version", root.get("version"), "1")
    figures = {e.get("name"): int(e.get("value")) for e in root if e.get("value") is not None}
    # The clock runs on from one format to the next.
    expected = {k: v for k, v in report.items() if isinstance(v, int) and k != "pid"}
    for volatile in ("longest_pause_ns",):
        figures.pop(volatile)
        expected.pop(volatile)
    expect_equal("figures in XML", figures, expected)
    for tag, key in (("sizes/size", "size_classes"), ("free_runs/run", "free_runs")):
        rows = [{k: int(v) for k, v in e.attrib.items()} for e in root.findall(tag)]
        expect_equal(tag, rows, report[key])
    for what in ("front_end", "page_heap"):
        element = root.find(what)
        expect_equal(what, element.get("name"), report[what])
        expect_equal(what, element.get("reason"), report[what + "_reason"])
    hugepages = root.find("hugepages")
    expect_equal("hugepages", hugepages is None, "hugepages" not in report)


def values_of(text):
    return {name: int(value) for name, value in re.findall(r"^(\S+)=(\d+)$", text, re.MULTILINE)}


def check_mallinfo(info, report):
    def total(*names):
        return sum(report[name] for name in names)

    expect_equal("arena", info["arena"], report["mapped_bytes"])
    expect_equal("uordblks", info["uordblks"], report["in_use"])
    expect_equal(
        "fsmblks",
        info["fsmblks"],
        total("thread_free", "cpu_free", "transfer_free", "central_free"),
    )
    expect_equal(
        "fordblks", info["fordblks"], total("page_heap_free", "page_heap_returned", "untouched")
    )
    expect_equal("keepcost", info["keepcost"], report["page_heap_free"])


def check_properties(properties, report):
    same = {
        "generic.current_allocated_bytes": report["in_use"],
        "generic.total_physical_bytes": report["physical"],
        "generic.virtual_memory_used": report["virtual"],
        "tcmalloc.central_cache_free_bytes": report["central_free"] + report["untouched"],
        "tcmalloc.transfer_cache_free_bytes": report["transfer_free"],
        "tcmalloc.thread_cache_free_bytes": report["thread_free"] + report["cpu_free"],
        "tcmalloc.pageheap_free_bytes": report["page_heap_free"],
        "tcmalloc.pageheap_unmapped_bytes": report["page_heap_returned"],
        "tcmalloc.pageheap_total_reserve_bytes": report["mapped_bytes"],
    }
    for name, value in properties.items():
        wanted = same[name] if name in same else report[name.removeprefix("tcmalloc.statistics.")]
        expect_equal(name, value, wanted)


def run(probe, mode, environment):
    # Nothing goes back by time between one format and the next.
    variables = os.environ | {"TCMALLOC_RELEASE_HALF_LIFE": "0"} | environment
    result = subprocess.run(
        [probe, mode], env=variables, capture_output=True, text=True, timeout=120, check=False
    )
    expect_equal("exit status of " + mode + " " + result.stderr, result.returncode, 0)
    return sections(result.stdout)


def check_rest(probe, environment):
    output = dict(run(probe, "rest", environment))
    report = json.loads(output["json"])
    check_sums(report)
    check_free_runs(report)
    check_text(output["text"], report)
    check_xml(output["xml"], report)
    check_mallinfo(values_of(output["mallinfo2"]), report)
    check_properties(values_of(output["properties"]), report)


def check_load(probe, environment):
    output = run(probe, "load", environment)
    expect(len(output) > 100, "reports:", len(output))
    for form, text in output:
        if form == "json":
            check_sums(json.loads(text))
        else:
            check_text(text)


def check_growth(probe, environment):
    """Blocks are rounded up, but no report says that more is live than was ever allocated."""
    output = run(probe, "grow", environment)
    for _, text in output:
        check_sums(json.loads(text))
    # Otherwise nothing was rounded up.
    report = json.loads(output[-1][1])
    expect_equal("allocated", report["allocated_bytes"], report["live_bytes"])


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True)
    probe = parser.parse_args().probe
    failed = False
    for environment in ENVIRONMENTS:
        for check in (check_rest, check_load, check_growth):
            try:
                check(probe, environment)
            except Failure as failure:
                print(f"{check.__name__} {environment}: {failure}", file=sys.stderr)
                failed = True
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
