#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Compiles each public header alone, in every version of its language, with warnings as errors."""

import argparse
import concurrent.futures
import os
import pathlib
import subprocess
import sys

C_STANDARDS = ("c89", "c99", "c11")
CXX_STANDARDS = ("c++98", "c++11", "c++14", "c++17", "c++20")
CXX_ONLY = {"malloc_extension.h", "internal_malloc_extension.h", "malloc_hook.h",
            "new_extension.h", "profile.h", "profile_marshaler.h", "sampled_allocation.h",
            "stacktrace.h", "heap-checker.h", "leak_suspects.h"}
# Types of the standard library, for which C++17 is needed.
MODERN = {"tcmalloc/malloc_extension.h", "tcmalloc/new_extension.h", "tcmalloc/profile.h",
          "tcmalloc/profile_marshaler.h", "tcmalloc/malloc_hook.h",
          "tcmalloc/sampled_allocation.h", "tcmalloc/leak_suspects.h"}
# Headers that a program may include beside each other, in either order.
TOGETHER = (("tcmalloc/malloc_extension.h", "gperftools/malloc_extension.h"),
            ("tcmalloc/new_extension.h", "gperftools/nallocx.h"),
            ("tcmalloc/new_extension.h", "gperftools/tcmalloc.h"),
            ("tcmalloc/malloc_hook.h", "gperftools/malloc_hook.h"),
            ("tcmalloc/malloc_hook.h", "tcmalloc/malloc_extension.h"))
WARNINGS = ("-pedantic", "-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Werror")
TIMEOUT_SECONDS = 120


def cxx_standards(name):
    first = "c++17" if name in MODERN else "c++11" if name.startswith("tcmalloc/") else "c++98"
    return CXX_STANDARDS[CXX_STANDARDS.index(first):]


def compilations(include, arguments):
    """Pairs of headers' names and a command."""
    cxx = [arguments.cxx, "-xc++", "-Wnon-virtual-dtor"]
    for header in sorted(include.glob("*/*.h")):
        name = header.relative_to(include).as_posix()
        if header.name not in CXX_ONLY:
            for standard in C_STANDARDS:
                yield (name,), [arguments.cc, "-xc", f"-std={standard}"]
        for standard in cxx_standards(name):
            yield (name,), [*cxx, f"-std={standard}"]
    for names in TOGETHER:
        for order in (names, names[::-1]):
            yield order, [*cxx, f"-std={CXX_STANDARDS[-1]}"]


def complaint(names, compiler, include):
    """What the compiler says about headers, or None."""
    # Twice, for the guard.
    source = "".join(f"#include <{name}>\n" for name in names * 2) + "int main(void) { return 0; }\n"
    command = [*compiler, *WARNINGS, f"-I{include}", "-fsyntax-only", "-"]
    compiled = subprocess.run(command, input=source, capture_output=True, text=True,
                              timeout=TIMEOUT_SECONDS)
    if compiled.returncode == 0:
        return None
    return f"{' '.join(names)}: {' '.join(command)}\n{compiled.stderr}"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--include", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    arguments = parser.parse_args()
    pairs = list(compilations(arguments.include, arguments))
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        complaints = list(pool.map(lambda pair: complaint(*pair, arguments.include), pairs))
    failures = [text for text in complaints if text]
    print("\n".join(failures) or f"{len(pairs)} compilations")
    return 1 if failures or not pairs else 0


if __name__ == "__main__":
    sys.exit(main())
