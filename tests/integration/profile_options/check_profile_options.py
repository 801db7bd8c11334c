#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Profiles that variables ask for: their types, their names, and those upon a signal."""

import argparse
import gzip
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

TYPES = ("heap", "peak", "growth", "allocations", "lifetimes", "fragmentation")
KEPT = 4000 * 10_000
MEBIBYTE = 1 << 20


class Failure(Exception):
    pass


def expect(condition, *what):
    if not condition:
        raise Failure(" ".join(str(word) for word in what))


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def fields(data):
    """The fields of a message as (number, value)."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        expect(key & 7 in (0, 2), "wire type", key & 7)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at : at + value], at + value
        yield key >> 3, value


def numbers(value):
    """The numbers of a packed field, or of one that is not packed."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = varint(value, at)
        found.append(number)
    return found


class Profile:
    """The sums of a profile.proto by their types."""

    def __init__(self, path):
        message = list(fields(gzip.decompress(path.read_bytes())))
        strings = [value.decode() for number, value in message if number == 6]
        types = [strings[dict(fields(value))[1]] for number, value in message if number == 1]
        self.rows = []
        for number, value in message:
            if number == 2:
                counts = [n for key, inner in fields(value) if key == 2 for n in numbers(inner)]
                self.rows.append(dict(zip(types, counts)))
        self.sums = {name: sum(row[name] for row in self.rows) for name in types}


def near(value, wanted, share=0.2):
    return abs(value - wanted) <= wanted * share


class Checks:
    def __init__(self, probe, folder):
        self.probe = probe
        self.folder = folder

    def start(self, *arguments, **variables):
        for left in self.folder.iterdir():
            left.unlink()
        kept = {k: v for k, v in os.environ.items() if not k.startswith("TCMALLOC_")}
        environment = kept | {"TCMALLOC_SAMPLE_PARAMETER": "64K"} | variables
        return subprocess.Popen([self.probe, *arguments], env=environment, cwd=self.folder, text=True,
                                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, *arguments, **variables):
        process = self.start(*arguments, **variables)
        out, errors = process.communicate(timeout=60)
        expect(process.returncode == 0, process.returncode, errors)
        return out, errors

    def names(self):
        return sorted(path.name for path in self.folder.iterdir())

    def check_one_type(self):
        self.run(TCMALLOC_HEAP_PROFILE="a.pb.gz")
        expect(self.names() == ["a.pb.gz"], self.names())
        sums = Profile(self.folder / "a.pb.gz").sums
        expect(near(sums["inuse_requested"], KEPT), sums)
        self.run(TCMALLOC_HEAP_PROFILE="a.pb.gz", TCMALLOC_PROFILE_TYPE="allocations")
        expect(self.names() == ["a.pb.gz"], self.names())
        sums = Profile(self.folder / "a.pb.gz").sums
        expect(near(sums["alloc_requested"], 2 * KEPT), sums)

    def check_all_types(self):
        self.run(TCMALLOC_HEAP_PROFILE="a.pb.gz", TCMALLOC_PROFILE_TYPE=",".join(TYPES))
        expect(self.names() == sorted(f"a.{name}.pb.gz" for name in TYPES), self.names())
        sums = {name: Profile(self.folder / f"a.{name}.pb.gz").sums for name in TYPES}
        expect(near(sums["peak"]["inuse_requested"], KEPT), sums["peak"])
        expect(near(sums["allocations"]["alloc_requested"], 2 * KEPT), sums["allocations"])
        expect(near(sums["lifetimes"]["objects"], 8000), sums["lifetimes"])
        expect(sums["growth"]["space"] > KEPT, sums["growth"])
        expect("pinned_space" in sums["fragmentation"], sums["fragmentation"])

    def check_texts(self):
        self.run(TCMALLOC_HEAP_PROFILE="%k.heap", TCMALLOC_PROFILE_TYPE=",".join(TYPES))
        expect(self.names() == sorted(f"{name}.heap" for name in TYPES), self.names())
        for name in TYPES[:4]:
            head = (self.folder / f"{name}.heap").read_text().splitlines()[0]
            found = re.fullmatch(r"heap profile: (\d+): (\d+) \[\1: \2\] @ (growth|heap_v2/65536)", head)
            expect(found and (found[3] == "growth") == (name == "growth"), name, head)
        for name in TYPES[4:]:
            Profile(self.folder / f"{name}.heap")

    def check_children(self):
        out, _ = self.run("fork", TCMALLOC_HEAP_PROFILE="a.heap")
        expect(self.names() == ["a.heap"], self.names())
        out, _ = self.run("fork", TCMALLOC_HEAP_PROFILE="%p.pb.gz")
        expect(self.names() == sorted(f"{number}.pb.gz" for number in out.split()), self.names(), out)
        for name in self.names():
            expect(near(Profile(self.folder / name).sums["inuse_requested"], KEPT), name)

    def check_names(self):
        self.run(TCMALLOC_HEAP_PROFILE="100%%-%x-%t-%n")
        expect(re.fullmatch(r"100%-%x-\d{10}-1", *self.names()), self.names())
        _, errors = self.run(TCMALLOC_HEAP_PROFILE="x" * 4094, TCMALLOC_PROFILE_TYPE="heap,peak")
        expect(self.names() == [] and errors.count("the path is too long") == 2, errors)
        _, errors = self.run(TCMALLOC_HEAP_PROFILE="a", TCMALLOC_PROFILE_TYPE="heap,heaps")
        expect("expected a list of heap" in errors, errors)

    def check_residency(self):
        self.run("untouched", TCMALLOC_HEAP_PROFILE="a.pb.gz")
        sums = Profile(self.folder / "a.pb.gz").sums
        expect(near(sums["inuse_space"], 128 * MEBIBYTE, 0.05), sums)
        expect(near(sums["resident_space"] + sums["swapped_space"], 64 * MEBIBYTE, 0.05), sums)

    def check_headers(self):
        self.run("headers")

    def await_files(self, count):
        deadline = time.monotonic() + 60
        while len(self.names()) < count or any(".tmp." in name for name in self.names()):
            expect(time.monotonic() < deadline, "no profile upon the signal", self.names())
            time.sleep(0.01)

    def check_signal(self):
        process = self.start("wait", TCMALLOC_HEAP_PROFILE_SIGNAL=str(int(signal.SIGUSR2)))
        for count in (1, 2):
            expect(process.stdout.readline() == "ready\n", "the probe does not start")
            process.send_signal(signal.SIGUSR2)
            self.await_files(count)
            process.stdin.write("\n")
            process.stdin.flush()
        process.communicate(timeout=60)
        expect(process.returncode == 0, process.returncode)
        expect(self.names() == [f"tcmalloc.{process.pid}.{n}.pb.gz" for n in (1, 2)], self.names())
        for name in self.names():
            expect(near(Profile(self.folder / name).sums["inuse_requested"], KEPT), name)

    def check_signal_beside_exit(self):
        process = self.start("wait", TCMALLOC_HEAP_PROFILE_SIGNAL="12", TCMALLOC_HEAP_PROFILE="a.pb.gz")
        process.stdout.readline()
        process.send_signal(12)
        self.await_files(1)
        process.communicate(timeout=60)
        expect(self.names() == ["a.1.pb.gz", "a.pb.gz"], self.names())

    def check_taken_signal(self):
        before = signal.signal(signal.SIGUSR2, signal.SIG_IGN)
        try:
            _, errors = self.run(TCMALLOC_HEAP_PROFILE_SIGNAL="12")
        finally:
            signal.signal(signal.SIGUSR2, before)
        expect("TCMALLOC_HEAP_PROFILE_SIGNAL=12: the signal has a handler" in errors, errors)
        _, errors = self.run(TCMALLOC_HEAP_PROFILE_SIGNAL="9")
        expect("TCMALLOC_HEAP_PROFILE_SIGNAL=9: the signal has a handler" in errors, errors)

    def check_stacktrace_method(self):
        for name, used in (("generic", "generic"), ("frame_pointers", "frame_pointers"),
                           ("libunwind", "tables")):
            _, errors = self.run(TCMALLOC_STACKTRACE_METHOD=name, TCMALLOC_STACKTRACE_METHOD_VERBOSE="1")
            expect(f"using {used}\n" in errors, name, errors)
            expect(("the program has no libunwind" in errors) == (name == "libunwind"), errors)
        _, errors = self.run(TCMALLOC_STACKTRACE_METHOD="arm")
        expect("expected tables, frame_pointers, libunwind" in errors, errors)

    def check_frame_pointers(self):
        """The frames of the library, which has no frame pointers, do not keep from those of the program."""
        self.run(TCMALLOC_HEAP_PROFILE="a.heap", TCMALLOC_STACKTRACE_METHOD="frame_pointers")
        text = (self.folder / "a.heap").read_text()
        stacks = re.findall(r"\] @((?: 0x\w+)*)$", text, re.MULTILINE)
        code = [range(int(begin, 16), int(end, 16))
                for begin, end in re.findall(r"^(\w+)-(\w+) r-xp", text, re.MULTILINE)]
        addresses = [int(address, 16) for stack in stacks for address in stack.split()]
        expect(stacks and all(len(stack.split()) > 2 for stack in stacks[1:]), text)
        expect(all(any(address in mapping for mapping in code) for address in addresses), text)

    def check_leaks_by_frame_pointers(self):
        self.run("thread", HEAPCHECK="normal", TCMALLOC_STACKTRACE_METHOD="frame_pointers")

    def check_mistakes_by_frame_pointers(self):
        for mode, lead in (("debug", "Noticed by free"), ("hardened", "noticed by free")):
            process = self.start("free-twice", TCMALLOC_MODE=mode, TCMALLOC_STACKTRACE_METHOD="frame_pointers")
            _, errors = process.communicate(timeout=60)
            expect(process.returncode == -signal.SIGABRT, mode, process.returncode, errors)
            _, _, after = errors.partition(lead)
            expect(re.match(r"[^\n]*\n *@ 0x\w+ [^\n]*profile_options_probe\+", after), mode, errors)


def check_notes(library):
    if not shutil.which("readelf"):
        return
    said = subprocess.run(["readelf", "-nW", library], check=True, capture_output=True, text=True).stdout
    found = re.findall(r"Provider: (\w+)\s+Name: (\w+)\s+Location: (0x\w+), Base: (0x\w+), "
                       r"Semaphore: (0x\w+)\s+Arguments: (.*)", said)
    counts = {(probe[0], probe[1]): len(probe[5].split()) for probe in found}
    expect(counts == {("otel_memory", "alloc"): 3, ("otel_memory", "free"): 1}, said)
    for probe in found:
        expect(all(int(address, 16) for address in probe[2:5]), probe)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", required=True)
    parser.add_argument("--library", required=True)
    arguments = parser.parse_args()
    failures = 0
    with tempfile.TemporaryDirectory(prefix="tcm_profile_options_") as folder:
        checks = Checks(arguments.probe, pathlib.Path(folder))
        names = [name for name in dir(checks) if name.startswith("check_")]
        steps = [(name, getattr(checks, name)) for name in names]
        for name, step in [*steps, ("check_notes", lambda: check_notes(arguments.library))]:
            try:
                step()
            except (Failure, subprocess.SubprocessError) as error:
                failures += 1
                print(f"{name}: {error}", file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
