#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compares what HEAPCHECK finds in real programs with what valgrind's memcheck finds.

    bench/leak_check/memcheck.py [--build build/release] [PROGRAM]...

Each program runs twice: under memcheck, of which definitely and indirectly lost blocks count, and with
HEAPCHECK=normal. Prints a row for each: bytes and blocks of both, how many sites each has, and how many of them are the
other's as well, with as many bytes. A site is the return addresses of the innermost frames beyond the allocator. Objects
are loaded at multiples of a page, so that the last twelve bits of an address are the same in both runs.
"""

import argparse
import collections
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

ROOT = pathlib.Path(__file__).resolve().parents[2]
FRAMES = 3
PAGE_MASK = 0xFFF
TIMEOUT_SECONDS = 900

PERL = 'my %h; for my $i (1..1000) { $h{"key$i"} = [$i, "v" x ($i % 50)] } print scalar(keys %h)'
SQL = "create table t(a,b); insert into t values(1,2),(3,4); select sum(a) from t;"
# Name, command. {source} is a C file, {preprocessed} one for the compiler proper, {assembly} one for as, {text} a text.
PROGRAMS = {
    "true": ["/bin/true"],
    "ls": ["/bin/ls", "-lR", "/usr/share/doc/bash"],
    "sed": ["/bin/sed", "-e", "s/a/b/g", "{text}"],
    "awk": ["/usr/bin/awk", "{{ n[$1]++ }} END {{ for (k in n) print k, n[k] }}", "{text}"],
    "grep": ["/bin/grep", "-E", "a.*(b|c)+", "{text}"],
    "sort": ["/usr/bin/sort", "{text}"],
    "find": ["/usr/bin/find", "/usr/share/doc/bash"],
    "tar": ["/bin/tar", "cf", "-", "-C", "{folder}", "text"],
    "make": ["/usr/bin/make", "-f", "{makefile}"],
    "bash": ["/bin/bash", "-c", "for i in 1 2 3; do x=$(echo $i); a[$i]=$x; done; echo ${{a[@]}}"],
    "perl": ["/usr/bin/perl", "-e", PERL.replace("{", "{{").replace("}", "}}")],
    "python": ["/usr/bin/python3", "-S", "-c", "import json; print(len(json.dumps(list(range(100)))))"],
    "sqlite": ["/usr/bin/sqlite3", ":memory:", SQL],
    "git": ["/usr/bin/git", "-C", str(ROOT), "log", "-n", "3", "--stat"],
    "curl": ["/usr/bin/curl", "-s", "file://{text}"],
    "openssl": ["/usr/bin/openssl", "dgst", "-sha256", "{text}"],
    "xz": ["/usr/bin/xz", "-k", "-c", "-0", "{text}"],
    "vim": ["/usr/bin/vim", "-u", "NONE", "-es", "-c", "%s/a/b/ge", "-c", "q!", "{text}"],
    "gcc": ["/usr/bin/gcc", "-c", "{source}", "-o", "/dev/null"],
    "cc1": ["{cc1}", "-quiet", "-O1", "{preprocessed}", "-o", "/dev/null"],
    "as": ["/usr/bin/as", "{assembly}", "-o", "/dev/null"],
    "gdb": ["/usr/bin/gdb", "-nx", "-batch", "-ex", "info line main", "{program}"],
    "ruby": ["/usr/bin/ruby", "-e", "a = (1..2000).map {{ |i| [i, i.to_s * 3] }}; puts a.size"],
}


def prepare(folder):
    """Makes the inputs."""
    source = folder / "source.c"
    source.write_text("#include <stdio.h>\nint main(void) { for (int i = 0; i < 9; i++) printf(\"%d\", i); return 0; }\n")
    places = {"folder": folder, "source": source, "program": folder / "program", "makefile": folder / "makefile",
              "preprocessed": folder / "source.i", "assembly": folder / "source.s", "text": folder / "text"}
    for flags, target in ((["-g"], "program"), (["-E"], "preprocessed"), (["-S"], "assembly")):
        subprocess.run(["gcc", *flags, source, "-o", places[target]], check=True)
    places["makefile"].write_text("a := $(foreach n,1 2 3 4,$(n)$(n))\nall:\n\t@echo $(a)\n")
    places["text"].write_text("".join(f"line {i * 7919 % 1000} abc{i}\n" for i in range(500)))
    places["cc1"] = subprocess.run(["gcc", "-print-prog-name=cc1"], capture_output=True, text=True,
                                   check=True).stdout.strip()
    return places


class Found:
    """What a checker has found: bytes and blocks of each site."""

    def __init__(self):
        self.sites = collections.defaultdict(lambda: [0, 0])

    def add(self, addresses, size, blocks):
        site = self.sites[tuple(address & PAGE_MASK for address in addresses[:FRAMES])]
        site[0] += size
        site[1] += blocks

    def total(self, figure):
        return sum(site[figure] for site in self.sites.values())


def execute(command, environment):
    return subprocess.run(command, env={**os.environ, "PERL_HASH_SEED": "0", "PYTHONHASHSEED": "0", **environment},
                          stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          timeout=TIMEOUT_SECONDS, check=False).stderr.decode(errors="replace")


DIRECT = re.compile(r"\(([\d,]+) direct,")


def memcheck(command, folder):
    # A program that starts others by exec would write to the same file.
    path = folder / "memcheck.%p.xml"
    execute(["valgrind", "--leak-check=full", "--show-leak-kinds=definite,indirect", "--leak-resolution=high",
             "--num-callers=30", "--trace-children=no", "--child-silent-after-fork=yes", "--xml=yes",
             f"--xml-file={path}", *command], {})
    found = Found()
    for name in folder.glob("memcheck.*.xml"):
        for error in xml.etree.ElementTree.parse(name).getroot().iter("error"):
            if error.findtext("kind") not in ("Leak_DefinitelyLost", "Leak_IndirectlyLost"):
                continue
            # memcheck tells the address before the return address.
            frames = [int(frame.findtext("ip"), 16) + 1 for frame in error.find("stack").findall("frame")
                      if "vgpreload" not in (frame.findtext("obj") or "")]
            # What lost blocks lead to is counted with them, and has a record of its own as well.
            direct = DIRECT.search(error.findtext("xwhat/text"))
            size = int(direct[1].replace(",", "")) if direct else int(error.findtext("xwhat/leakedbytes"))
            found.add(frames, size, int(error.findtext("xwhat/leakedblocks")))
        name.unlink()
    return found


LEAK = re.compile(r"Leak of (\d+) bytes in (\d+) objects")


def heap_check(command, library, folder):
    text = execute(command, {"LD_PRELOAD": str(library), "HEAPCHECK": "normal", "HEAP_CHECK_MAX_LEAKS": "0",
                             # A program that it starts shall not fail because of a leak.
                             "TCMALLOC_HEAP_CHECK_EXIT_CODE": "0",
                             "HEAP_CHECK_DUMP_DIRECTORY": str(folder)})
    # Programs that it starts report as well: the last report is its own, because it waits for them.
    start = max(text.rfind("Leak check _main_ detected"), text.rfind("leak check _main_: no leaks"))
    if start < 0:
        return None
    found = Found()
    for part in text[start:].split("\nLeak of ")[1:]:
        match = LEAK.match("Leak of " + part)
        frames = [int(line.split()[1], 16) for line in part.splitlines() if line.startswith("\t@ ")]
        found.add(frames, int(match[1]), int(match[2]))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--sites", action="store_true", help="prints the sites that differ as well")
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    arguments = parser.parse_args()
    library = arguments.build.resolve() / "lib/libtcmalloc.so.4"
    print("| program | memcheck: bytes | blocks | sites | HEAPCHECK: bytes | blocks | sites | same sites |")
    print("|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="tcm_memcheck_") as name:
        folder = pathlib.Path(name)
        places = prepare(folder)
        for program in arguments.programs or PROGRAMS:
            command = [word.format(**places) for word in PROGRAMS[program]]
            if shutil.which(command[0]) is None:
                continue
            theirs = memcheck(command, folder)
            ours = heap_check(command, library, folder)
            if ours is None:
                print(f"| {program} | made no check |", flush=True)
                continue
            same = sum(1 for site, sums in theirs.sites.items() if ours.sites.get(site) == sums)
            print(f"| {program} | {theirs.total(0):,} | {theirs.total(1):,} | {len(theirs.sites)} | "
                  f"{ours.total(0):,} | {ours.total(1):,} | {len(ours.sites)} | {same} |", flush=True)
            if arguments.sites:
                for site in sorted(set(theirs.sites) | set(ours.sites)):
                    both = theirs.sites.get(site), ours.sites.get(site)
                    if both[0] != both[1]:
                        print("   ", " ".join(f"{address:03x}" for address in site), both, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
