#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs every workload and checks what it prints; checks workloads.json and the command lines.

Each workload runs at a tiny size unless --full is given. With --preload it runs under that
allocator.
"""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent
TIMEOUT_SECONDS = 120
TAGS = {"default", "quick", "memory", "hugepages", "real", "server", "untuned"}
KEYS = {"name", "family", "program", "command", "args", "threads", "description", "tags",
        "optional", "package", "needs"}

# Later options win, so these make a workload small.
TINY = {
    "batch": ["--ops=20000", "--batch=1000"],
    "bignum": ["--rounds=10"],
    "binary_trees": ["--depth=8", "--rounds=3"],
    "cross_free": ["--ops=20000"],
    "cube_cover": ["--functions=50"],
    "false_sharing": ["--rounds=100", "--writes=10"],
    "fragmentation": ["--live-bytes=1m", "--epochs=4"],
    "half_free": ["--rounds=8"],
    "idle": ["--bytes=1m", "--pause-seconds=0"],
    "json_like": ["--documents=20", "--values=200"],
    "large_objects": ["--ops=50"],
    "larson": ["--generations=3", "--ops=2000"],
    "locality": ["--count=2000", "--walks=2"],
    "many_threads": ["--threads=10"],
    "mixed_sizes": ["--bursts=100"],
    "phone_book": ["--records=500", "--rounds=1"],
    "pointer_chase": ["--bytes=1m", "--steps=10000"],
    "producer_consumer": ["--ops=20000"],
    "random_blocks": ["--ops=20000"],
    "realloc_steps": ["--ops=5000", "--step=16", "--blocks=2000", "--max-size=128"],
    "rounds": ["--rounds=2", "--many=200", "--max-bits=16"],
    "small_start": ["--processes=2"],
    "space": ["--count=20000"],
    "string_map": ["--ops=5000"],
    "swing": ["--count=500", "--rounds=3"],
    "t_test1": ["--ops=2000"],
    "thread_churn": ["--lives=20"],
    "tight": ["--ops=10000"],
    "trace_replay": ["--repeat=1"],
    "two_phase": ["--bytes=2m"],
}

WRONG_ARGUMENTS = (["--no-such-option=1"], ["stray"], ["--help-me"], ["--repeat=x", "--threads=x"])


class Checker:
    def __init__(self, options):
        self.programs = options.build / "bin" / "workloads"
        self.library_directory = options.build / "lib"
        self.data = options.build / "bench-data"
        self.full = options.full
        self.environment = dict(os.environ)
        if options.preload:
            self.environment["LD_PRELOAD"] = options.preload
        self.failures = 0
        self.runs = 0

    def expect(self, condition, message):
        if not condition:
            self.failures += 1
            print(f"FAILED: {message}", file=sys.stderr)

    def run(self, command, **changes):
        self.runs += 1
        try:
            return subprocess.run(command, capture_output=True, text=True, errors="replace",
                                  timeout=TIMEOUT_SECONDS, env=self.environment | changes,
                                  check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, "timeout", "", "")

    def check_entry(self, entry):
        name = entry["name"]
        self.expect(set(entry) <= KEYS, f"{name}: unknown keys")
        self.expect(set(entry["tags"]) <= TAGS, f"{name}: unknown tags")
        self.expect(("program" in entry) != ("command" in entry), f"{name}: program or command")
        self.expect(entry.get("optional", False) == ("package" in entry),
                    f"{name}: what is optional names its package, and nothing else does")
        self.expect(entry["threads"] >= 1 and entry["description"] and entry["family"],
                    f"{name}: incomplete")

    def run_entry(self, entry):
        arguments = [argument.replace("{data}", str(self.data))
                     for argument in entry.get("command", []) + entry["args"]]
        if "command" in entry:
            needs = [program_of(arguments), *entry.get("needs", [])]
            if entry.get("optional") and None in map(shutil.which, needs):
                return
            result = self.run(arguments)
            self.expect(result.returncode == 0, f"{entry['name']}: exit {result.returncode}")
            return
        tiny = [] if self.full else TINY[entry["program"]]
        self.check_report(entry["name"],
                          self.run([self.programs / entry["program"], *arguments, *tiny]))

    def check_report(self, name, result):
        self.expect(result.returncode == 0, f"{name}: exit {result.returncode} {result.stderr}")
        try:
            report = json.loads(result.stdout.splitlines()[-1])
            self.expect(report["ops"] > 0 and report["seconds"] > 0 and
                        report["cpu_seconds"] > 0, f"{name}: {report}")
        except (IndexError, KeyError, TypeError, ValueError) as error:
            self.expect(False, f"{name}: {error!r} in {result.stdout!r}")

    def check_short_runs(self, program, options):
        """The options that make a run short for `tcm bench --explain` are ones of the program."""
        result = self.run([self.programs / program, *options, "--help"])
        self.expect(result.returncode == 0, f"{program} {options}: {result.stderr}")

    def check_command_line(self, program):
        result = self.run([self.programs / program, "--help"])
        self.expect(result.returncode == 0 and "usage:" in result.stdout, f"{program} --help")
        for arguments in WRONG_ARGUMENTS:
            result = self.run([self.programs / program, *arguments])
            self.expect(result.returncode == 2 and result.stderr.count("\n") == 1,
                        f"{program} {arguments} gives {result.returncode}, {result.stderr!r}")

    def check_that_faults_show(self, programs):
        """Under a malloc that returns live blocks again each of these must notice."""
        broken = self.library_directory / "libbroken_malloc.so"
        for program in programs:
            result = self.run([self.programs / program, *TINY[program]], LD_PRELOAD=str(broken))
            self.expect(result.returncode == 1 and
                        ("overwritten" in result.stderr or "lost" in result.stderr),
                        f"{program} under a broken malloc: {result.returncode} {result.stderr}")

    def check_recorder(self):
        """The allocations of a program of two threads can be recorded, converted and replayed."""
        with tempfile.TemporaryDirectory() as scratch:
            raw, trace = f"{scratch}/raw", f"{scratch}/trace"
            recorded = self.run([self.programs / "cross_free", "--threads=2", "--ops=5000"],
                                LD_PRELOAD=str(self.library_directory / "libtrace_recorder.so"),
                                TRACE_RECORDER_FILE=raw)
            self.check_report("recorded cross_free", recorded)
            converted = self.run([sys.executable, SOURCE / "trace" / "convert_trace.py", raw, trace],
                                 LD_PRELOAD="")
            self.expect(converted.returncode == 0, f"convert_trace.py: {converted.stderr}")
            replayed = self.run([self.programs / "trace_replay", f"--trace={trace}"])
            self.check_report("replay of cross_free", replayed)
            allocations_and_frees = 10000
            self.expect(json.loads(replayed.stdout or "{}").get("ops", 0) > allocations_and_frees,
                        f"the trace lacks events: {replayed.stdout}")

    def check_neighbours(self):
        """Each allocation is counted once, that of operator new too, and in no more pages than there may be."""
        with tempfile.NamedTemporaryFile() as counts:
            preload = [self.library_directory / "libneighbours.so", self.environment.get("LD_PRELOAD")]
            result = self.run([self.programs / "json_like", *TINY["json_like"]], NEIGHBOURS_FILE=counts.name,
                              LD_PRELOAD=":".join(str(path) for path in preload if path))
            self.check_report("json_like under libneighbours.so", result)
            found = json.loads(counts.read() or "{}")
        allocations, groups = found.get("allocations", 0), found.get("groups", 0)
        values = 20 * 200
        # Two for each value, as there are strings and containers; twice that if each new counted as malloc too.
        self.expect(2 * values < allocations < 3 * values, f"neighbours: {found}")
        self.expect(allocations / 2 < 64 * groups <= allocations, f"neighbours: {found}")
        self.expect(groups <= found.get("pages", 0) <= 64 * groups, f"neighbours: {found}")


def program_of(command):
    """The program that a command is about: env only sets variables for it."""
    if command[0] != "env":
        return command[0]
    return next(word for word in command[1:] if "=" not in word)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True, help="build directory")
    parser.add_argument("--preload", help="allocator to run under")
    parser.add_argument("--full", action="store_true", help="run at full size")
    options = parser.parse_args()

    entries = json.loads((SOURCE / "workloads.json").read_text())
    checker = Checker(options)
    names = [entry["name"] for entry in entries]
    checker.expect(len(names) == len(set(names)), "a name is used twice")
    for entry in entries:
        checker.check_entry(entry)
        checker.run_entry(entry)
    programs = sorted({entry["program"] for entry in entries if "program" in entry})
    checker.expect(programs == sorted(TINY), "programs and their tiny sizes differ")
    explain = json.loads((SOURCE / "explain.json").read_text())
    checker.expect(programs == sorted(explain), "programs and those of explain.json differ")
    for program in programs:
        checker.check_command_line(program)
        checker.check_short_runs(program, explain[program])
    checker.check_that_faults_show(
        ["batch", "cross_free", "fragmentation", "half_free", "larson", "locality", "mixed_sizes",
         "producer_consumer", "random_blocks", "realloc_steps", "space", "swing", "t_test1",
         "two_phase"])
    checker.check_recorder()
    checker.check_neighbours()
    print(f"{checker.runs} runs, {checker.failures} failures")
    return 1 if checker.failures else 0


if __name__ == "__main__":
    sys.exit(main())
