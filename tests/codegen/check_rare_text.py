#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""What most processes never call lies behind all other code of the library, and only that.

The system maps code in runs of pages: one function of the usual ones among the rare ones, or the
other way round, and every process has both resident.
"""

import argparse
import pathlib
import subprocess
import sys

import check_fast_path

USUAL = ("malloc", "free", "_Znwm", "_ZdlPv", "calloc", "realloc",
         "_ZN8tcmalloc4Heap10InitializeEv", "_ZN8tcmalloc12ForkHandlers8RegisterEv",
         "_ZN8tcmalloc8SpinLock8LockSlowEv", "_ZN8tcmalloc14SizeClassLists4MakeEh",
         "_ZN8tcmalloc11LoadOptionsERNS_11EnvironmentEPNS_7OptionsE")
RARE = ("_ZN8tcmalloc15WriteTextReportERNS_8ByteSinkEi",
        "_ZN8tcmalloc9HugeSpans5ClaimENS_9PageRangeEbPb", "tcmalloc_allocate_by_mm_cid",
        "MallocExtension_GetStats")
# Of a library with profiles: what every process calls, and what those call that take samples or write a profile.
USUAL_WITH_PROFILES = ("_ZN8tcmalloc14NoteHeapGrowthEm",
                       "_ZN8tcmalloc17BeginExitProfilesERKNS_7OptionsE",
                       "_ZN8tcmalloc13GuardedBlocks9ConfigureERKNS_7OptionsE",
                       "_ZN8tcmalloc22CheckFreeObjectsAtExitEv")
SAMPLING = ("_ZN8tcmalloc11EarlyStacks3AddERNS_10StackTableE",
            "_ZN8tcmalloc11SampleTable3AddERKNS_6SampleE")
UNWIND = ("_ZN8tcmalloc16FindLoadedObjectEmbPNS_12LoadedObjectE",)
RARE_WITH_PROFILES = ("_ZN8tcmalloc10WriteProtoERKNS_16CollectedProfileERNS_8ByteSinkE",
                      "_ZN8tcmalloc8Recorder5StartEi")


def output_of(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


# The columns of readelf's table in which a section begins.
ADDRESS = 3
FILE_OFFSET = 4


def range_of(library, section, column=ADDRESS):
    """Returns where a section of the library lies in memory or in the file; None if it has none."""
    for line in output_of("readelf", "-SW", str(library)).splitlines():
        fields = line.replace("[ ", "[").split()
        if len(fields) > 5 and fields[1] == section:
            start = int(fields[column], 16)
            return range(start, start + int(fields[5], 16))
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--with-profiles", action="store_true")
    arguments = parser.parse_args()
    rare, sampling, unwind = (range_of(arguments.library, section)
                              for section in (".text.rare", ".text.sampling", ".text.unwind"))
    if rare is None:
        print("skipped: the linker took no part of a script")
        return check_fast_path.SKIPPED
    addresses = {}
    for line in output_of("nm", str(arguments.library)).splitlines():
        fields = line.split()
        if len(fields) == 3 and fields[1] in "tTwW":
            addresses[fields[2].split("@")[0]] = int(fields[0], 16)
    groups = {"usual": USUAL, "rare": RARE}
    if arguments.with_profiles:
        groups = {"usual": USUAL + USUAL_WITH_PROFILES, "rare": RARE + RARE_WITH_PROFILES, "sampling": SAMPLING,
                  "unwind": UNWIND}
    wrong = []
    for expected, group in groups.items():
        for name in group:
            address = addresses.get(name)
            if address is None:
                wrong.append(f"{name}: no such function")
                continue
            sections = {"rare": rare, "sampling": sampling or (), "unwind": unwind or ()}
            found = next((kind for kind, section in sections.items() if address in section), "usual")
            if found != expected:
                wrong.append(f"{name} lies among the {found} functions")
    print("\n".join(wrong) or f"{len(rare)} bytes of rare functions")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
