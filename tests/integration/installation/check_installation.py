#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Installs the build, moves what was installed, builds and runs each example there, and removes it.

The prefix holds files of others before, which must be all that is left in the end. The examples are
those that were installed, so that nothing of the source or the build tree is used.
"""

import argparse
import concurrent.futures
import pathlib
import re
import shutil
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[3] / "scripts"))

# pylint: disable=wrong-import-position
import installed_docs
from processes import check_tool, expect, run, run_checks

SKIPPED = 77
TOOLS = ("make", "nm", "pkg-config", "readelf")
SONAME = "libtcmalloc_minimal.so.4"
PROFILER = "libprofiler.so.0"
# Every shared library, with the number of its interface.
SONAMES = (SONAME, "libtcmalloc.so.4", "libtcmalloc_and_profiler.so.4", "libtcmalloc_debug.so.4",
           "libtcmalloc_minimal_debug.so.4", PROFILER)
KEEPS = """
#include <stdlib.h>
char* volatile kept;
__attribute__((noinline)) void keep_block(void) { kept = malloc(1 << 20); }
int main(void) { keep_block(); return 0; }
"""
OTHERS = ("lib/of_others.txt", "share/doc/others/README")


def tree(folder):
    """Every file, link and folder below a folder, by its name."""
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


class Installation:
    """One installation and the examples built against it."""

    def __init__(self, arguments, work):
        self.arguments = arguments
        self.first_prefix = work / "first"
        self.prefix = work / "moved"
        self.out = work / "out"
        self.destination = work / "destination"
        self.before = None

    @property
    def library(self):
        return self.prefix / "lib" / SONAME

    @property
    def examples(self):
        return self.prefix / "share/doc/tcmalloc/examples"

    def install(self):
        for name in OTHERS:
            path = self.first_prefix / name
            path.parent.mkdir(parents=True)
            path.write_text("of others\n")
        self.out.mkdir()
        self.before = tree(self.first_prefix)
        self._install("--prefix", self.first_prefix)
        self.first_prefix.rename(self.prefix)

    def _install(self, *options, **variables):
        return run(self.arguments.cmake, "--install", self.arguments.build, *options, **variables)

    def check_components(self):
        self._install("--prefix", "/opt/tc", "--component", "runtime", DESTDIR=self.destination)
        installed = [path.name for path in (self.destination / "opt/tc/lib").iterdir()]
        expect(set(SONAMES) <= set(installed) and len(installed) == 2 * len(SONAMES),
               f"runtime has {sorted(installed)}")
        files = {path.name for path in self.destination.rglob("*") if not path.is_dir()}
        expect(files == {*installed, "uninstall.cmake", "manifest.cmake"},
               f"runtime has {sorted(files)}")

    def check_installations_at_once(self):
        """People and package builders may install the same build at the same time."""
        folders = [self.out / f"at_once_{number}" for number in range(4)]
        with concurrent.futures.ThreadPoolExecutor(len(folders)) as pool:
            list(pool.map(lambda folder: self._install("--prefix", folder, "--component", "doc"),
                          folders))
        first, *others = [tree(folder / "share") for folder in folders]
        expect("doc/tcmalloc/docs/README.md" in first, f"installed: {first}")
        expect(all(other == first for other in others), f"differ: {others}")

    def check_libraries(self):
        for soname in SONAMES:
            library = self.prefix / "lib" / soname
            dynamic = run("readelf", "-W", "-d", library)
            expect(f"Library soname: [{soname}]" in dynamic, dynamic)
            needed = re.findall(r"\(NEEDED\).*\[(.*)\]", dynamic)
            expect(needed == ["libc.so.6"], f"{soname} needs {needed}")
            # gperftools' libraries have no versions, and a program linked with them asks for none.
            versions = run("readelf", "-W", "-V", library)
            expect("Version definition" not in versions, versions)
            link = library.with_suffix("")
            expect(link.readlink() == pathlib.Path(soname), f"{link} is no link to {soname}")

    def check_headers(self):
        for header in sorted((self.prefix / "include").rglob("*.h")):
            name = header.relative_to(self.prefix / "include")
            run(self.arguments.cxx, "-std=c++20", "-fsyntax-only", f"-I{self.prefix}/include", "-xc++",
                "-", text=f"#include <{name}>\n")

    def _libraries_of(self, program):
        return run(program, LD_TRACE_LOADED_OBJECTS=1)

    def _expect_shared(self, program):
        found = re.search(rf"{SONAME} => (\S+)", self._libraries_of(program))
        expect(found and pathlib.Path(found[1]).resolve() == self.library.resolve(),
               f"{program} uses {found and found[1]}")

    def check_link(self):
        program = self.out / "word_index"
        run(self.examples / "link/build.sh", PREFIX=self.prefix, CC=self.arguments.cc, OUT=program)
        self._expect_shared(program)
        said = run(program, text=" ".join(f"word{i}" for i in range(5000)))
        expect("allocator: gperftools " in said and "different words: 5000\n" in said, said)
        cost = int(re.search(r"bytes for them: (\d+)", said)[1])
        expect(5000 * 32 <= cost <= 5000 * 32 * 1.1 + 20000, said)

    def check_pkg_config(self):
        options = {"PKG_CONFIG_PATH": self.prefix / "lib/pkgconfig"}
        run("pkg-config", "--atleast-version=2.10", "libtcmalloc_minimal", **options)
        program = self.out / "heap_limit"
        run("make", "-C", self.examples / "pkg_config", f"PREFIX={self.prefix}",
            f"CC={self.arguments.cc}", f"OUT={program}")
        self._expect_shared(program)
        said = run(program)
        allocated = int(re.search(r"allocated: (\d+) MiB, then: Cannot allocate memory", said)[1])
        expect(32 <= allocated <= 64, said)
        # The archives, with the options for static linking.
        for soname in SONAMES:
            # The program limits the heap, which that library has not.
            if soname == PROFILER:
                continue
            name = soname.partition(".")[0]
            flags = run("pkg-config", "--cflags", "--libs", "--static", name, **options)
            static = self.out / f"static_heap_limit_{name}"
            run(self.arguments.cc, "-static", self.examples / "pkg_config/heap_limit.c",
                *flags.split(), "-o", static)
            run(static)

    def check_cmake(self):
        build = self.out / "cmake"
        run(self.arguments.cmake, "-S", self.examples / "cmake", "-B", build,
            f"-DCMAKE_PREFIX_PATH={self.prefix}", f"-DCMAKE_CXX_COMPILER={self.arguments.cxx}",
            "-DCMAKE_EXPORT_NO_PACKAGE_REGISTRY=ON")
        run(self.arguments.cmake, "--build", build)
        self._expect_shared(build / "give_back")
        expect(SONAME not in self._libraries_of(build / "give_back_static"),
               "give_back_static uses the shared library")
        for program in ("give_back", "give_back_static"):
            said = run(build / program)
            held = [int(kib) for kib in re.findall(r"(\d+) KiB in physical memory", said)]
            expect(len(held) == 3 and held[0] > 10000 and held[2] < held[1] / 4, said)

    def check_static(self):
        program = self.out / "block_sizes"
        run(self.examples / "static/build.sh", PREFIX=self.prefix, CC=self.arguments.cc, OUT=program)
        # _int_malloc is a local function of libc's malloc.
        symbols = {line.split()[-1] for line in run("nm", program).splitlines()}
        expect("tc_malloc" in symbols and "_int_malloc" not in symbols, "libc's malloc is linked")
        rows = [line.split() for line in run(program).splitlines()[1:]]
        expect(len(rows) > 5 and all(int(r) <= int(n) == int(b) for r, n, b in rows), f"{rows}")

    def check_preload(self):
        # cat closes its stderr before the statistics come.
        said = run(self.examples / "preload/run.sh", sys.executable, "-c",
                   "print(open('/proc/self/maps').read())", PREFIX=self.prefix)
        expect(str(self.library.resolve()) in said, said)
        expect("MALLOC:" in said and "Bytes in use by application" in said, said)

    def check_tool(self):
        tool = self.prefix / "bin/tcm"
        if not tool.exists():
            print("tcm is not built, so it is not checked: scripts/build_tool.sh")
            return
        check_tool(tool, self.library.resolve(), self.out / "bench")
        for name in ("tcm", "tcm-run", "tcm-bench", "tcm-doctor"):
            expect((self.prefix / f"share/man/man1/{name}.1.gz").exists(), f"no page of {name}")

    def check_gdb(self):
        """The commands of gdb, and their copy for gdb to find by the library's place."""
        script = self.prefix / "share/gdb/tcm-gdb.py"
        auto_load = self.prefix / "share/gdb/auto-load" / str(self.first_prefix).lstrip("/")
        copy = auto_load / "lib" / f"{self.library.resolve().name}-gdb.py"
        expect(copy.read_text() == script.read_text(), f"{copy} is another script")
        if shutil.which("gdb"):
            said = run("gdb", "-nx", "-batch", "-ex", f"source {script}", "-ex", "help heap block")
            expect("what the allocator knows of an address" in said, said)

    def check_profile(self):
        """A static program that was linked as pkg-config says writes a profile with its functions."""
        tool = self.prefix / "bin/tcm"
        if not tool.exists():
            return
        flags = run("pkg-config", "--cflags", "--libs", "--static", "libtcmalloc",
                    PKG_CONFIG_PATH=self.prefix / "lib/pkgconfig")
        program = self.out / "keeps"
        run(self.arguments.cc, "-static", "-xc", "-", "-xnone", *flags.split(), "-o", program, text=KEEPS)
        profile = self.out / "keeps.heap"
        run(program, TCMALLOC_HEAP_PROFILE=profile, TCMALLOC_SAMPLE_PARAMETER="4K")
        said = run(tool, "heap", profile)
        expect("keep_block" in said, said)

    def check_documents(self):
        broken = installed_docs.broken_links(self.prefix.resolve() / "share/doc/tcmalloc")
        expect(not broken, "\n".join(broken))

    def check_uninstall(self):
        said = run(self.arguments.cmake, "-P", self.prefix / "share/tcmalloc/uninstall.cmake")
        expect(f"Removed: {self.library}\n" in said, said)
        after = tree(self.prefix)
        expect(after == self.before, f"left: {set(after) ^ set(self.before)}\n{said}")
        script = self.destination / "opt/tc/share/tcmalloc/uninstall.cmake"
        run(self.arguments.cmake, "-D", "PREFIX=/opt/tc", "-P", script, DESTDIR=self.destination)
        expect(tree(self.destination) == ["opt"], f"left: {tree(self.destination)}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cmake", default="cmake")
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    arguments = parser.parse_args()
    missing = [name for name in TOOLS if not shutil.which(name)]
    if missing:
        print(f"missing: {', '.join(missing)}")
        return SKIPPED
    with tempfile.TemporaryDirectory(prefix="tcm_installation_") as folder:
        installation = Installation(arguments, pathlib.Path(folder))
        names = ("install", "check_components", "check_installations_at_once", "check_libraries",
                 "check_headers", "check_link",
                 "check_pkg_config", "check_cmake", "check_static", "check_preload", "check_tool",
                 "check_gdb", "check_profile", "check_documents", "check_uninstall")
        return run_checks([(name, getattr(installation, name)) for name in names])


if __name__ == "__main__":
    sys.exit(main())
