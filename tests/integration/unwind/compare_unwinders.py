#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares our unwinder with libunwind on the stacks of real programs.

Each program runs with a library that walks the stack of some calls of malloc by both. Of all
stacks of a program, 99 % must be equal. Programs that are not installed are left out; without
libunwind nothing is done.
"""

import argparse
import ctypes
import os
import pathlib
import re
import subprocess
import sys
import tempfile

SKIPPED = 77
LEAST_EQUAL = 0.99
LEAST_STACKS = 20

CPP = "#include <map>\n#include <regex>\nint main() { std::map<int, std::regex> m; return m.size(); }\n"
PYTHON = "import json, re, decimal; x = [json.loads(json.dumps({'a': [i, str(i)]})) for i in range(20000)]"
PERL = "my %h; $h{$_ % 1000} .= \"x$_\" for 1..200000; print scalar(keys %h), qq(\\n)"
RUBY = "h = {}; 100000.times { |i| h[i] = i.to_s * 3 }; puts h.size"
SQL = "with recursive c(n) as (select 1 union all select n+1 from c where n < 50000) select count(distinct n % 997) from c;"
JAVASCRIPT = "let m = new Map(); for (let i = 0; i < 3e5; ++i) m.set(i, {a: [i, String(i)]}); console.log(m.size)"
BASH = "for i in {1..3000}; do x=\"$x$i\"; a[$i]=$x; done; echo ${#x}"

PROGRAMS = {
    "python3": ["/usr/bin/python3", "-c", PYTHON],
    "perl": ["perl", "-e", PERL],
    "bash": ["bash", "-c", BASH],
    "g++": ["g++", "-O2", "-c", "input.cc", "-o", "input.o"],
    "git": ["git", "-c", "pack.threads=4", "fast-export", "--no-data", "--all"],
    "sqlite3": ["sqlite3", ":memory:", SQL],
    "gdb": ["gdb", "-batch", "-nx", "-ex", "info functions main", "/usr/bin/gdb"],
    "node": ["node", "-e", JAVASCRIPT],
    "ruby": ["ruby", "-e", RUBY],
    "php": ["php8.2", "-r", "$a = []; for ($i = 0; $i < 100000; ++$i) $a[] = [strval($i)]; echo count($a);"],
    "java": ["java", "-version"],
    "redis-server": ["redis-server", "--version"],
    "vim": ["vim", "-es", "-u", "NONE", "-c", "call range(100000)", "-c", "qa!"],
    "emacs": ["emacs", "--batch", "-Q", "--eval", "(dotimes (i 20000) (format \"%d\" i))"],
    "awk": ["gawk", "BEGIN { for (i = 0; i < 200000; ++i) a[i] = i \"x\"; print length(a) }"],
}

LINE = re.compile(r"^(\S+) compared=(\d+) equal=(\d+) frames=(\d+)$", re.MULTILINE)


def prepare(folder):
    (folder / "input.cc").write_text(CPP)
    git = ["git", "-C", str(folder), "-c", "user.name=a", "-c", "user.email=a@b"]
    try:
        subprocess.run(["git", "init", "-q", str(folder)], check=True)
        for i in range(20):
            (folder / "file").write_text(str(i))
            subprocess.run([*git, "add", "file"], check=True)
            subprocess.run([*git, "commit", "-qm", str(i)], check=True)
    except FileNotFoundError:
        pass


def run(name, command, folder, probe, every):
    """Returns (stacks, equal ones, frames, text of the report), or None if it cannot run."""
    report = folder / f"report.{name}"
    environment = dict(os.environ, LD_PRELOAD=str(probe), TCM_PROBE_OUT=str(report),
                       TCM_PROBE_EVERY=str(every))
    try:
        done = subprocess.run(command, cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                              stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, timeout=120)
    except FileNotFoundError:
        return None
    if done.returncode < 0:
        raise SystemExit(f"{name} was ended by signal {-done.returncode}: {done.stderr.decode()}")
    text = report.read_text() if report.exists() else ""
    numbers = [tuple(map(int, match.groups()[1:])) for match in LINE.finditer(text)]
    return *(sum(column) for column in zip(*numbers, (0, 0, 0))), text


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--every", type=int, default=16, help="of so many calls, one is compared")
    parser.add_argument("--show", action="store_true", help="print stacks that differ")
    parser.add_argument("programs", nargs="*", help="those to run, instead of all")
    options = parser.parse_args()
    try:
        ctypes.CDLL("libunwind.so.8")
    except OSError:
        print("libunwind is not installed")
        return SKIPPED
    probe = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests" / "libunwind_probe.so"
    bad = []
    with tempfile.TemporaryDirectory() as directory:
        folder = pathlib.Path(directory)
        prepare(folder)
        for name in options.programs or PROGRAMS:
            result = run(name, PROGRAMS[name], folder, probe, options.every)
            if result is None:
                print(f"{name:14} is not installed")
                continue
            stacks, equal, frames, text = result
            if stacks < LEAST_STACKS:
                print(f"{name:14} {stacks:8} stacks: too few to judge")
                continue
            print(f"{name:14} {stacks:8} stacks {frames / stacks:6.1f} frames each "
                  f"{100 * equal / stacks:8.3f} % equal")
            if options.show:
                print(text)
            if equal < LEAST_EQUAL * stacks:
                bad.append(name)
                if not options.show:
                    print(text[:4000])
    if bad:
        print("too many stacks differ:", ", ".join(bad))
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
