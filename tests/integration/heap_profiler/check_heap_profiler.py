#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs a program of known allocations under the heap profiler with every variable and function, and
compares the files with what it did. Debian's google-pprof reads them, too, where it is installed."""

import argparse
import json
import os
import re
import shutil
import stat
import subprocess
import sys
import tempfile

HEAD = re.compile(r"heap profile: +(\d+): +(\d+) \[ *(\d+): +(\d+)\] @ heapprofile")
ROW = re.compile(r" *(\d+): +(\d+) \[ *(\d+): +(\d+)\] @((?: 0x[0-9a-f]+)*)")
TIMES = 1000

failures = []


def expect(condition, what):
    if not condition:
        failures.append(what)
        print("FAILED:", what)


def expect_equal(value, expected, what):
    expect(value == expected, f"{what}: {value!r}, expected {expected!r}")


class Profile:
    """The rows of a file: (objects in use, bytes in use, allocations, bytes allocated, frames)."""

    def __init__(self, text):
        lines = text.split("\n")
        head = HEAD.fullmatch(lines[0])
        expect(head is not None, f"head line {lines[0]!r}")
        self.rows = []
        for line in lines[1:]:
            row = ROW.fullmatch(line)
            if row is None:
                break
            self.rows.append([int(field) for field in row.groups()[:4]] + [row.group(5).split()])
        sums = [sum(row[i] for row in self.rows) for i in range(4)]
        expect_equal([int(field) for field in head.groups()], sums, "sums of the head line")
        in_use = [row[1] for row in self.rows]
        expect_equal(in_use, sorted(in_use, reverse=True), "order of the rows")
        self.sums = sums
        expect("\n\nMAPPED_LIBRARIES:\n" in text and " r-xp " in text, "mappings")

    def of_size(self, size):
        """Returns in use and allocated objects of the rows whose objects have a size."""
        rows = [row for row in self.rows if row[2] and row[3] == size * row[2]]
        for row in rows:
            expect_equal(row[1], size * row[0], f"bytes in use of {size}")
        return sum(row[0] for row in rows), sum(row[2] for row in rows)


def marked(path):
    """Returns a path as gperftools leaves it in the environment for programs that are started."""
    name = os.fsencode(path)
    return os.fsdecode(bytes([name[0] | 0x80]) + name[1:])


class Run:
    """One run of the probe in a folder of its own."""

    def __init__(self, probe, *arguments, prefix="p", prepare=None, **environment):
        # Goes when nobody refers to the run any more.
        self.place = tempfile.TemporaryDirectory(prefix="tcm-heap-profiler-")
        self.folder = self.place.name
        self.prefix = os.path.join(self.folder, prefix)
        if prepare is not None:
            prepare(self.prefix)
        if environment.pop("HEAPPROFILE", True):
            environment["HEAPPROFILE"] = self.prefix
        if environment.pop("MARKED", False):
            environment["HEAPPROFILE"] = marked(self.prefix)
        arguments = [a.replace("PREFIX", self.prefix) for a in arguments]
        run = subprocess.run([probe, *arguments], env={**os.environ, **environment}, timeout=120,
                             capture_output=True, text=True, errors="replace", check=False)
        self.output, self.messages = run.stdout, run.stderr
        expect_equal(run.returncode, 0, f"status of {arguments}: {run.stderr}")

    def files(self):
        return sorted(name for name in os.listdir(self.folder) if name.endswith(".heap"))

    def reasons(self):
        return re.findall(r"^Dumping heap profile to .* \((.*)\)$", self.messages, re.MULTILINE)

    def read(self, name):
        path = os.path.join(self.folder, name)
        expect_equal(stat.S_IMODE(os.stat(path).st_mode), 0o600, f"mode of {name}")
        with open(path, encoding="utf-8") as file:
            return Profile(file.read())

    def last(self):
        return self.read(self.files()[-1])


def check_known(probe, threads):
    run = Run(probe, "known" if threads == 1 else "known8")
    # Of 4.6 GiB, one for each GiB; what is allocated while a file is written counts for it.
    expect(len(run.files()) in ((1,) if threads == 1 else (3, 4, 5)), f"files {run.files()}")
    expect("Starting tracking the heap\n" in run.messages, "message of the start")
    expect(run.reasons()[-1].startswith("Exiting, "), f"reason at the end: {run.reasons()}")
    profile = run.last()
    count = threads * TIMES
    for size in (1009, 1067, 1511, 2003, 8192, 3001, 401):
        expect_equal(profile.of_size(size), (count // 2, count), f"{threads} threads, size {size}")
    for size in (503, 600_007):
        expect_equal(profile.of_size(size), (0, count), f"{threads} threads, size {size}")
    return run


def check_readers(probe, run):
    """google-pprof finds the functions and the totals."""
    pprof = shutil.which("google-pprof")
    if pprof is None:
        print("google-pprof is not installed; not checked")
        return
    report = subprocess.run([pprof, "--text", "--alloc_objects", probe,
                             os.path.join(run.folder, run.files()[-1])],
                            capture_output=True, text=True, check=False).stdout
    expect("AllocateKnown" in report, f"google-pprof: {report}")
    total = re.search(r"Total: (\d+) objects", report)
    expect(total and int(total.group(1)) >= 9 * TIMES, f"google-pprof's total: {report[:200]}")


def check_proto(probe, tool):
    run = Run(probe, "known", TCMALLOC_PROFILE_FORMAT="proto")
    names = os.listdir(run.folder)
    expect_equal(names, ["p.0001.heap.pb.gz"], "files of profile.proto")
    if not os.path.exists(tool):
        print("tcm is not built; not checked")
        return
    legacy = Run(probe, "known")
    for profile in (os.path.join(run.folder, names[0]),
                    os.path.join(legacy.folder, "p.0001.heap")):
        for kind, count in (("alloc_objects", 9 * TIMES), ("inuse_objects", 7 * TIMES // 2)):
            report = subprocess.run([tool, "heap", "--json", "--type", kind, profile],
                                    capture_output=True, text=True, check=False)
            rows = json.loads(report.stdout)["functions"] if report.returncode == 0 else []
            flat = sum(row["flat"] for row in rows if "AllocateKnown" in row["name"])
            expect_equal(flat, count, f"{kind} by tcm in {profile}: {report.stderr}")


def check_intervals(probe):
    run = Run(probe, "turnover", HEAP_PROFILE_ALLOCATION_INTERVAL="5000000")
    expect_equal([reason.split(" MB")[0] for reason in run.reasons()[:-1]],
                 ["4", "9", "14"] + (["19"] if len(run.reasons()) == 5 else []),
                 "allocation interval")
    expect("MB allocated cumulatively, 0 MB currently in use" in run.messages, "reason")
    run = Run(probe, "turnover", HEAP_PROFILE_DEALLOCATION_INTERVAL="6M")
    expect_equal(run.reasons()[:-1],
                 [f"{mb} MB freed cumulatively, 0 MB currently in use" for mb in (6, 12, 18)],
                 "deallocation interval")
    run = Run(probe, "rise", HEAP_PROFILE_INUSE_INTERVAL="2500000")
    expect_equal(run.reasons()[:-1], ["2 MB currently in use", "4 MB currently in use"],
                 "in-use interval")
    run = Run(probe, "turnover", HEAP_PROFILE_ALLOCATION_INTERVAL="0",
              HEAP_PROFILE_INUSE_INTERVAL="0")
    expect_equal(len(run.files()), 1, "files without intervals")
    run = Run(probe, "sleep", HEAP_PROFILE_TIME_INTERVAL="1")
    expect_equal(run.reasons()[0], "1 sec since the last dump", "time interval")


def check_signal(probe):
    run = Run(probe, "signal", HEAPPROFILESIGNAL="10")
    expect("Using signal 10 as heap profiling switch\n" in run.messages, "message of the signal")
    expect_equal(run.reasons(), ["signal", "Exiting, 9 kB in use"], "signal")
    expect_equal(run.read("p.0001.heap").of_size(100), (100, 100), "blocks at the signal")
    for signal in ("9", "64"):
        run = Run(probe, "nothing", HEAPPROFILESIGNAL=signal)
        expect_equal(len(run.files()), 1, f"files with signal {signal}")
    expect("HEAPPROFILESIGNAL=9: " in Run(probe, "nothing", HEAPPROFILESIGNAL="9").messages,
           "signal that cannot be caught")


def check_names(probe):
    def leave_files(prefix):
        for name in (".0001.heap", ".0007.heap", ".other.heap", "2.0001.heap", ".0003.txt"):
            with open(prefix + name, "w", encoding="utf-8"):
                pass

    run = Run(probe, "nothing", prepare=leave_files)
    expect_equal(run.files(), ["p.0001.heap", "p2.0001.heap"], "files after the cleanup")
    run = Run(probe, "nothing", prepare=leave_files, HEAP_PROFILE_CLEANUP="false")
    expect_equal(len(run.files()), 4, "files without a cleanup")
    for environment, suffix in (
            ({"PMIX_RANK": "5"}, r"\.rank-5"),
            ({"PMI_RANK": "6"}, r"\.rank-6"),
            ({"SLURM_JOB_ID": "1", "SLURM_PROCID": "7"}, r"\.slurmid-7"),
            ({"SLURM_JOB_ID": "1"}, r"_\d+"),
            ({"OMPI_HOME": "/x"}, r"_\d+"),
            ({"HEAPPROFILE_USE_PID": "1"}, r"_\d+"),
            ({"HEAPPROFILE_USE_PID": "1", "PMIX_RANK": "5"}, r"\.rank-5_\d+"),
            ({"MARKED": True}, r"_\d+"),
            ({"MARKED": True, "HEAPPROFILE_USE_PID": "1"}, r"_\d+")):
        run = Run(probe, "nothing", **environment)
        expect(len(run.files()) == 1 and re.fullmatch(f"p{suffix}\\.0001\\.heap", run.files()[0]),
               f"names with {environment}: {run.files()}")
    run = Run(probe, "nothing", prefix="p%s%n")
    expect_equal(run.files(), ["p%s%n.0001.heap"], "name with %")


def check_processes(probe):
    run = Run(probe, "fork")
    child = f"p_{run.output.strip()}.0001.heap"
    expect_equal(run.files(), ["p.0001.heap", child], "files of parent and child")
    expect_equal(run.read("p.0001.heap").of_size(300), (0, 0), "the child's blocks in the parent")
    expect_equal(run.read(child).of_size(300), (50, 50), "the child's blocks")
    expect_equal(run.read(child).of_size(100), (100, 100), "the parent's blocks in the child")
    run = Run(probe, "exec")
    expect_equal(run.files(), ["p.0001.heap", f"p_{run.output.strip()}.0001.heap"],
                 "files of a program that was started")
    run = Run(probe, "forks")
    expect_equal(run.output.strip(), "0", "children that failed")
    run = Run(probe, "signals")
    expect_equal(len(run.files()), 1, "files after many signals")


def check_mappings(probe):
    run = Run(probe, "map", HEAP_PROFILE_MMAP="1", HEAP_PROFILE_MMAP_LOG="1")
    profile = run.last()
    mapped = [row for row in profile.rows if row[3] in (1 << 20, 3 << 19, 4096, 65536)]
    expect_equal(sorted(row[:4] for row in mapped),
                 sorted([[1, (1 << 18) - 4096, 1, 1 << 20], [1, (3 << 19) - 4096, 1, 3 << 19],
                         [1, 4096, 1, 4096], [1, 65536, 1, 65536]]), "mappings")
    expect_equal(profile.of_size(1000)[1], 10, "blocks beside mappings")
    for call in ("mmap(start=0x0, len=1048576, prot=0x3, flags=0x22, fd=-1, offset=0x0) = 0x",
                 "munmap(start=0x", "mremap(old_addr=0x", "sbrk(inc=65536) = 0x"):
        expect(call in run.messages, f"log of {call}")
    profile = Run(probe, "map", HEAP_PROFILE_ONLY_MMAP="1").last()
    expect_equal(profile.of_size(1000), (0, 0), "blocks without blocks")
    expect_equal(profile.of_size(65536), (1, 1), "sbrk alone")
    run = Run(probe, "map")
    expect_equal(run.last().of_size(65536), (0, 0), "sbrk without mappings")
    expect("mmap(" not in run.messages, "log without being asked")


def check_interface(probe, mode):
    run = Run(probe, "interface", "PREFIX", HEAPPROFILE=False, TCMALLOC_MODE=mode)
    flags, text = run.output.split("\n", 1)
    expect_equal(flags, "0100", "running before, between and after; length when stopped")
    expect_equal(Profile(text).of_size(1009), (100, 100), "GetHeapProfile")
    expect_equal(run.files(), ["p.0001.heap", "p.0002.heap"], "files")
    expect_equal(run.reasons(), ["first", ""], "reasons")
    first, second = run.read("p.0001.heap"), run.read("p.0002.heap")
    expect_equal(first.of_size(1009), (100, 100), "first start")
    expect_equal(first.of_size(10), (0, 0), "blocks of before the start")
    expect_equal(second.sums, [10, 20030, 10, 20030], "second start")


def check_restarts(probe):
    # The first sample maps memory for copies of stacks.
    run = Run(probe, "restarts", "PREFIX", HEAPPROFILE=False, TCMALLOC_SAMPLE_PARAMETER="0")
    # The heap itself may take some more pages meanwhile.
    expect(int(run.output) < 100, f"pages that 1000 starts and stops leave: {run.output}")


def check_hostile_prefixes(probe):
    run = Run(probe, "known", prefix="missing/p")
    expect_equal(run.messages.count("cannot be created"), 1, "one message for a missing folder")

    def make_link(prefix):
        with open(prefix + ".victim", "w", encoding="utf-8") as file:
            file.write("precious")
        os.symlink(prefix + ".victim", prefix + ".0001.heap")

    run = Run(probe, "nothing", prepare=make_link, HEAP_PROFILE_CLEANUP="0")
    with open(run.prefix + ".victim", encoding="utf-8") as file:
        expect_equal(file.read(), "precious", "the file behind a link")
    expect("exists, and is not a regular file" in run.messages, "message for a link")
    for prepare in (lambda prefix: os.mkfifo(prefix + ".0001.heap"),
                    lambda prefix: os.mkdir(prefix + ".0001.heap")):
        run = Run(probe, "nothing", prepare=prepare, HEAP_PROFILE_CLEANUP="0")
        expect("exists, and is not a regular file" in run.messages, "message for a FIFO or folder")
    # Without the number of the file, as long as a path may be.
    long_name = "p" * (4090 - len(tempfile.gettempdir()) - len("/tcm-heap-profiler-xxxxxxxx/"))
    run = Run(probe, "nothing", prefix=long_name)
    expect("the name of a heap profile is too long" in run.messages, "message for a long prefix")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True)
    probe = parser.parse_args().probe
    check_readers(probe, check_known(probe, 1))
    check_known(probe, 8)
    check_proto(probe, os.path.join(os.environ.get("TCM_TEST_BIN_DIR", ""), "tcm"))
    check_intervals(probe)
    check_signal(probe)
    check_names(probe)
    check_processes(probe)
    check_mappings(probe)
    for mode in ("default", "hardened", "debug"):
        check_interface(probe, mode)
    check_restarts(probe)
    check_hostile_prefixes(probe)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
