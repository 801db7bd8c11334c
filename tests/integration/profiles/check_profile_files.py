#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Reads the profiles of a program with 1000 call sites: all bytes are there, estimates from samples are
within their bound, every frame of the program has a name, and comments tell the options. google-pprof reads the text as well,
where it is installed, and `tcm pprof` both, where it is built."""

import argparse
import bisect
import gzip
import math
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SITES = 1000
BLOCKS = sum(n % 7 + 1 for n in range(SITES))
BYTES = sum((n % 7 + 1) * 100 * (n % 10 + 1) for n in range(SITES))
# Of samples, where not every block is one.
PERIOD = 1024
SITE = re.compile(r"\bSite(\d{3})\b")


def varint(data, at):
    value = shift = 0
    while True:
        value |= (data[at] & 0x7f) << shift
        shift += 7
        at += 1
        if data[at - 1] < 0x80:
            return value, at


def numbers(data):
    at = 0
    while at < len(data):
        value, at = varint(data, at)
        yield value


def fields(data):
    """The fields of a message: number and value, which is a number or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        value, at = varint(data, at)
        if key & 7 == 2:
            value, at = data[at:at + value], at + value
        yield key >> 3, value


class Profile:
    """The samples, locations and mappings of a profile.proto."""

    def __init__(self, path):
        self.samples, self.locations, self.mappings, self.strings = [], {}, {}, []
        comments = []
        for field, value in fields(gzip.decompress(path.read_bytes())):
            if field == 2:
                sample = dict((f, v) for f, v in fields(value) if f in (1, 2))
                self.samples.append((list(numbers(sample.get(1, b""))), list(numbers(sample[2]))))
            elif field == 3:
                mapping = dict(fields(value))
                self.mappings[mapping[1]] = mapping
            elif field == 4:
                location = dict(fields(value))
                self.locations[location[1]] = location
            elif field == 6:
                self.strings.append(value.decode())
            elif field == 13:
                comments.append(value)
        self.comments = [self.strings[number] for number in comments]

    def addresses_in(self, path):
        """The places in a file, by the file's own addresses, of each location in it."""
        places = {}
        for number, location in self.locations.items():
            mapping = self.mappings.get(location.get(2, 0))
            if mapping and self.strings[mapping[5]] == str(path):
                places[number] = location[3] - mapping[2] + mapping.get(4, 0)
        return places


class Symbols:
    """The functions of a program, whose file offsets are found by its program headers."""

    def __init__(self, program):
        lines = subprocess.run(["nm", "-C", "-n", program], check=True, capture_output=True,
                               text=True).stdout.splitlines()
        functions = [line.split(" ", 2) for line in lines
                     if line[0] != " " and line[17] in "tTwWi"]
        self.starts = [int(address, 16) for address, _, _ in functions]
        self.names = [name for _, _, name in functions]
        text = subprocess.run(["readelf", "-lW", program], check=True, capture_output=True,
                              text=True).stdout
        self.loads = [tuple(int(word, 16) for word in load.split()[1:6])
                      for load in re.findall(r"^ +(LOAD .*)$", text, re.MULTILINE)]

    def name_of(self, offset):
        for start, address, _, size, _ in self.loads:
            if start <= offset < start + size:
                at = bisect.bisect_right(self.starts, offset - start + address)
                return self.names[at - 1] if at else None
        return None


def expect(what, have, wanted):
    if have != wanted:
        sys.exit(f"{what}: {have}, and not {wanted}")
    print(f"{what}: {have}")


def sites_of(path, program):
    """The blocks and bytes of each call site of the program."""
    profile = Profile(path)
    places = profile.addresses_in(program)
    symbols = Symbols(program)
    names = {number: symbols.name_of(place) for number, place in places.items()}
    expect("frames of the program without a name",
           [hex(places[number]) for number, name in names.items() if not name], [])
    sites = {}
    for frames, values in profile.samples:
        site = next((match for match in (SITE.search(names.get(f) or "") for f in frames) if match),
                    None)
        if site:
            objects, size = sites.get(int(site[1]), (0, 0))
            sites[int(site[1])] = (objects + values[0], size + values[2])
    return sites


def check_proto(path, program):
    sites = sites_of(path, program)
    wanted = {n: (n % 7 + 1, (n % 7 + 1) * 100 * (n % 10 + 1)) for n in range(SITES)}
    wrong = {n: sites.get(n) for n in range(SITES) if sites.get(n) != wanted[n]}
    expect("call sites with other blocks or bytes than they have", wrong, {})


def check_estimates(path, program):
    """The tenth parts of the tree, which have blocks of one size each, are what they are within six
    standard deviations, which chance exceeds once in a hundred million runs. Each site may be rounded
    by a block."""
    sites = sites_of(path, program)
    for part in range(10):
        size = 100 * (part + 1)
        numbers = range(part, SITES, 10)
        blocks = sum(n % 7 + 1 for n in numbers)
        found = [sum(sites.get(n, (0, 0))[which] for n in numbers) for which in (0, 1)]
        chance = 1 - math.exp(-size / PERIOD)
        allowed = 6 * math.sqrt(blocks * (1 - chance) / chance) + 1
        print(f"blocks of {size} bytes: {found[0]} of {blocks} ± {allowed:.0f}")
        if abs(found[0] - blocks) > allowed or abs(found[1] - blocks * size) > allowed * size:
            sys.exit(f"blocks of {size} bytes: {found} instead of {blocks}, {blocks * size}")


def check_small_heap(path, program):
    """Samples of a small heap have stacks, which were copied and walked when the profile was written."""
    expect("samples without a stack", [s for s in Profile(path).samples if not s[0]], [])
    size = sum(found[1] for found in sites_of(path, program).values())
    print(f"bytes in a small heap by samples: {size}")
    if size == 0:
        sys.exit("no sample has a call site")


def check_comments(path, wanted):
    expect("comments", Profile(path).comments, wanted)


def check_text(path):
    lines = path.read_text().splitlines()
    if not re.fullmatch(r"heap profile: +\d+: +\d+ \[ *\d+: +\d+\] @ heap_v2/1", lines[0]):
        sys.exit(f"the first line is {lines[0]}")
    end = lines.index("MAPPED_LIBRARIES:")
    counts = [re.match(r" *(\d+): +(\d+) \[", line) for line in lines[1:end] if line]
    total = sum(int(count[2]) for count in counts)
    expect("the text has all bytes", total >= BYTES, True)


def check_reader(command, program, path):
    result = subprocess.run([*command, str(program), str(path)], capture_output=True, text=True,
                            timeout=300, env={**os.environ, "LD_PRELOAD": ""})
    found = {int(number) for number in SITE.findall(result.stdout)}
    if len(found) != SITES:
        sys.exit(f"{command[0]} shows {len(found)} call sites\n{result.stderr[-2000:]}")
    print(f"{pathlib.Path(command[0]).name} shows {len(found)} call sites of {path.name}")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tcm_profiles_") as folder:
        proto, text = pathlib.Path(folder, "a.pb.gz"), pathlib.Path(folder, "a.heap")
        # Every block is a sample, so that all numbers are exact.
        subprocess.run([arguments.probe, proto, text], check=True, timeout=60,
                       env={**os.environ, "TCMALLOC_SAMPLE_PARAMETER": "1"})
        check_proto(proto, arguments.probe.resolve())
        check_comments(proto, ["TCMALLOC_SAMPLE_PARAMETER=1"])
        check_text(text)
        sampled = pathlib.Path(folder, "sampled.pb.gz")
        subprocess.run([arguments.probe, sampled], check=True, timeout=60,
                       env={**os.environ, "TCMALLOC_SAMPLE_PARAMETER": str(PERIOD)})
        check_estimates(sampled, arguments.probe.resolve())
        small = pathlib.Path(folder, "small.pb.gz")
        subprocess.run([arguments.probe, small], check=True, timeout=60, env={**os.environ, "PROBE_TIMES": "12"})
        check_small_heap(small, arguments.probe.resolve())
        google_pprof = shutil.which("google-pprof")
        if google_pprof:
            check_reader([google_pprof, "--text", "--nodecount=100000", "--nodefraction=0",
                          "--edgefraction=0"], arguments.probe, text)
        tcm = pathlib.Path(os.environ.get("TCM_TEST_BIN_DIR", "."), "tcm")
        if tcm.exists():
            for path in (proto, text):
                check_reader([str(tcm), "pprof", "-symbolize=local", "-top", "-nodecount=100000",
                              "-nodefraction=0"], arguments.probe, path)


if __name__ == "__main__":
    main()
