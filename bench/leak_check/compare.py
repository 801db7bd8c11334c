#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Measures what HEAPCHECK=normal costs, here and in gperftools 2.10.

    bench/leak_check/compare.py [--build build/release] [--rounds 9] [WORKLOAD]...

For each workload the runs take turns: ours without a check, ours with one, gperftools with one. Prints a
table of medians over the rounds: CPU time (user and system, of the process and of the one that it makes for the check),
which other work on the machine changes least, and peak resident memory. A wrong exit status or a missing line of the
check is printed instead of a figure. The number of allocations comes from a run of its own.
"""

import argparse
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
GPERFTOOLS = pathlib.Path("/usr/lib/x86_64-linux-gnu/libtcmalloc.so.4")

PYTHON = """
import json
records = [{"name": "n%d" % i, "values": list(range(20)), "next": {"x": i}} for i in range(300)]
for _ in range(4): records = json.loads(json.dumps(records))
"""
PERL = 'my %h; for my $r (1..5) { for my $i (1..4000) { $h{"key$i"} = [$r, $i, "v" x ($i % 50)] } } print scalar(keys %h)'
RUBY = 'puts (0...68000).map { |i| "a text that takes a block, number %d" % i }.size'
SQL = """create table t(a integer primary key, b text);
with recursive c(x) as (select 1 union all select x + 1 from c where x < 12000) insert into t select x, hex(x * 7919) from c;
create index i on t(b); select count(*), sum(length(b)) from t where b > '3'; select group_concat(b) is null from t;"""

# Name, command. {bin} is the folder of the workloads, {cc1} the compiler proper, {source} a preprocessed file, {header}
# one that includes headers of libc.
WORKLOADS = {
    "binary_trees": ["{bin}/binary_trees", "--threads=1", "--rounds=3"],
    "json_like": ["{bin}/json_like", "--documents=80"],
    "string_map": ["{bin}/string_map", "--ops=100000"],
    "cube_cover": ["{bin}/cube_cover", "--functions=2000"],
    "phone_book": ["{bin}/phone_book", "--threads=2", "--records=20000"],
    "larson": ["{bin}/larson", "--threads=2", "--generations=2", "--ops=50000"],
    "mixed_sizes": ["{bin}/mixed_sizes", "--threads=1", "--bursts=2000"],
    "cc1": ["{cc1}", "-quiet", "-O2", "{source}", "-o", "/dev/null"],
    "python": ["/usr/bin/python3", "-c", PYTHON],
    "perl": ["/usr/bin/perl", "-e", PERL],
    "sqlite": ["/usr/bin/sqlite3", ":memory:", SQL],
    "git": ["/usr/bin/git", "-C", str(ROOT), "log", "--stat", "-n", "5"],
    "xz": ["/usr/bin/xz", "-k", "-c", "-0", "{big}"],
    "openssl": ["/usr/bin/openssl", "dgst", "-sha512", "{big}"],
    "perl_start": ["/usr/bin/perl", "-e", "1"],
    "gcc": ["/usr/bin/gcc", "-fsyntax-only", "{header}"],
    "ruby": ["/usr/bin/ruby", "-e", RUBY],
    "gzip": ["/usr/bin/gzip", "-c", "-1", "{big}"],
}
# Lines by which each says that it has looked.
LOOKED = {"ours": ("no leaks. Each", "detected leaks of"), "gperftools": ("No leaks found", "Leak of", "leaks")}


def find_compiler():
    result = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True, check=True)
    return result.stdout.strip()


def prepare(folder):
    """Makes the inputs: two C files, and 128 MiB of text."""
    source = folder / "source.i"
    with open(source, "w", encoding="utf-8") as file:
        for i in range(60):
            file.write(f"int f{i}(int *a, int n) {{ int s = {i}; for (int k = 0; k < n; k++) "
                       f"s += a[k] * {i} + (s >> {i % 13}); return s; }}\n")
    header = folder / "header.c"
    header.write_text("#include <stdio.h>\n#include <stdlib.h>\n#include <string.h>\n", encoding="utf-8")
    big = folder / "big"
    with open(big, "wb") as file:
        for i in range(1 << 13):
            file.write((b"%d" % i).ljust(1 << 14, b"x"))
    return {"source": source, "header": header, "big": big}


def run(launcher, command, environment):
    """Returns CPU seconds, peak KiB, status and stderr.

    Linux starts the peak of a process at the size of the one that forked it, so that a small program does it.
    """
    settings = [word for name, value in environment.items() for word in ("--set", f"{name}={value}")]
    reader, writer = os.pipe()
    with tempfile.TemporaryFile() as errors:
        with subprocess.Popen([launcher, *settings, "--fd", str(writer), "--", *command], stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=errors, pass_fds=[writer]) as process:
            os.close(writer)
            with os.fdopen(reader) as lines:
                cost = json.loads(lines.readline())
            process.wait()
        errors.seek(0)
        text = errors.read().decode(errors="replace")
    return (cost["user_us"] + cost["system_us"]) / 1e6, cost["max_rss_kib"], cost["exit"], text


def count_allocations(command, library):
    """Returns the number of allocations of the process itself."""
    reader, writer = os.pipe()
    with subprocess.Popen(command, env={**os.environ, "LD_PRELOAD": str(library), "TCM_COUNT_FD": str(writer)},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                          pass_fds=[writer]) as process:
        os.close(writer)
        process.wait()
    with os.fdopen(reader) as lines:
        counts = [int(line) for line in lines]
    return max(counts, default=0)


class Side:
    def __init__(self, kind, library, checked, folder):
        self.kind = kind
        self.checked = checked
        self.environment = {"LD_PRELOAD": str(library)}
        if checked:
            self.environment |= {"HEAPCHECK": "normal", "HEAP_CHECK_DUMP_DIRECTORY": str(folder),
                                 # Neither library waits for a tool that looks for names.
                                 "PPROF_PATH": "/bin/true"}
        self.samples = []
        self.problem = None

    def run(self, launcher, command):
        cpu, peak, status, text = run(launcher, command, self.environment)
        self.samples.append((cpu, peak))
        if status not in ((0, 1) if self.checked else (0,)):
            self.problem = f"exit status {status}"
        elif self.checked and not any(line in text for line in LOOKED[self.kind]):
            self.problem = "made no check"

    def median(self, figure):
        return statistics.median(sample[figure] for sample in self.samples)


def measure(launcher, command, sides, rounds):
    for number in range(rounds):
        for i in range(len(sides)):
            sides[(i + number) % len(sides)].run(launcher, command)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--gperftools", type=pathlib.Path, default=GPERFTOOLS)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("workloads", nargs="*", metavar="WORKLOAD", help=", ".join(WORKLOADS))
    arguments = parser.parse_args()
    ours = arguments.build.resolve() / "lib/libtcmalloc.so.4"
    launcher = arguments.build.resolve() / "bin/tcm_launch"
    counter = arguments.build.resolve() / "bin/micro/leak_check_count_allocations.so"
    print("| workload | allocations | per second of CPU, unchecked | CPU s, unchecked | checked | times unchecked | "
          "gperftools, checked | of its time | MiB, unchecked | checked | gperftools, checked | of its peak |")
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tcm_leak_cost_") as name:
        folder = pathlib.Path(name)
        places = {"bin": arguments.build.resolve() / "bin/workloads", "cc1": find_compiler(), **prepare(folder)}
        for workload in arguments.workloads or WORKLOADS:
            command = [word.format(**places) if "{" in word and "%" not in word and "$" not in word else word
                       for word in WORKLOADS[workload]]
            if shutil.which(command[0]) is None:
                continue
            allocations = count_allocations(command, counter)
            plain = Side("ours", ours, False, folder)
            checked = Side("ours", ours, True, folder)
            theirs = Side("gperftools", arguments.gperftools, True, folder)
            measure(launcher, command, [plain, checked, theirs], arguments.rounds)
            cells = [workload, f"{allocations:,}", f"{allocations / plain.median(0):,.0f}",
                     f"{plain.median(0):.2f}"]
            if checked.problem or plain.problem:
                cells += [checked.problem or plain.problem] * 2
            else:
                cells += [f"{checked.median(0):.2f}", f"{checked.median(0) / plain.median(0):.2f}"]
            cells += ([theirs.problem] * 2 if theirs.problem else
                      [f"{theirs.median(0):.2f}", f"{checked.median(0) / theirs.median(0):.2f}"])
            cells += [f"{plain.median(1) / 1024:.1f}", f"{checked.median(1) / 1024:.1f}"]
            cells += ([theirs.problem] * 2 if theirs.problem else
                      [f"{theirs.median(1) / 1024:.1f}", f"{checked.median(1) / theirs.median(1):.2f}"])
            print("| " + " | ".join(cells) + " |", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
