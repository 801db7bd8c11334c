#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Links small programs with each library in the ways that people do, and checks whose malloc runs.

A program linked with a shared library says from which file its malloc comes. A program with a
static library has malloc in itself; that libc's own malloc was not linked as well is seen from its
symbols.
"""

import argparse
import dataclasses
import itertools
import os
import pathlib
import subprocess
import sys
import tempfile

SOURCES = pathlib.Path(__file__).parent
LIBRARIES = ("tcmalloc_minimal", "tcmalloc")
# Stand for the library: for its name without lib, and for its shared one.
LIBRARY = "LIBRARY"
SHARED = "shared"
LIBC = "libc.so.6"
TIMEOUT_SECONDS = 120


@dataclasses.dataclass
class Link:
    name: str
    source: str
    # Arguments of the compiler; "@" stands for the source, "LIBRARY" for the library's name.
    arguments: str
    # Where malloc must come from: the library, libc, or the program itself.
    malloc: str

    @property
    def is_static(self):
        """Whether libc is in the program as well, so that it cannot look itself up."""
        return bool({"-static", "-static-pie"} & set(self.arguments.split()))


C = "whose_malloc.c"
CXX = "whose_new.cc"
PROGRAM = "the program"
LINKS = [
    Link("C", C, "@ -lLIBRARY", SHARED),
    Link("C89", C, "-std=gnu89 -pedantic @ -lLIBRARY", SHARED),
    Link("C, no PIE", C, "-no-pie @ -lLIBRARY", SHARED),
    Link("C, symbols bound at start", C, "-Wl,-z,now @ -lLIBRARY", SHARED),
    Link("C, symbols bound lazily", C, "-Wl,-z,lazy @ -lLIBRARY", SHARED),
    Link("C++", CXX, "@ -lLIBRARY", SHARED),
    Link("C++, all symbols exported", CXX, "-rdynamic @ -lLIBRARY", SHARED),
    Link("C++, static C++ library", CXX, "-static-libstdc++ -static-libgcc @ -lLIBRARY",
         SHARED),
    # --as-needed keeps a library only when what stands before it refers to it.
    Link("as needed, after the program", C, "-Wl,--as-needed @ -lLIBRARY", SHARED),
    Link("as needed, before the program", C, "-Wl,--as-needed -lLIBRARY @", LIBC),
    Link("as needed, no reference", C, "-DNO_REFERENCE -Wl,--as-needed @ -lLIBRARY",
         LIBC),
    Link("as needed, no reference, but kept", C,
         "-DNO_REFERENCE -Wl,--as-needed @ -Wl,--push-state,--no-as-needed -lLIBRARY "
         "-Wl,--pop-state", SHARED),
    # The archive with everything else shared.
    Link("archive, C", C, "-rdynamic @ -l:libLIBRARY.a -lstdc++", PROGRAM),
    Link("archive, C++", CXX, "-rdynamic @ -l:libLIBRARY.a", PROGRAM),
    Link("archive, C++, no PIE", CXX, "-no-pie -rdynamic @ -l:libLIBRARY.a", PROGRAM),
    Link("whole archive, no reference", C,
         "-DNO_REFERENCE -rdynamic @ -Wl,--whole-archive -l:libLIBRARY.a "
         "-Wl,--no-whole-archive -lstdc++", PROGRAM),
    # The archive with everything else static.
    Link("static, C", C, "-static @ -l:libLIBRARY.a -lstdc++", PROGRAM),
    Link("static, C++", CXX, "-static @ -l:libLIBRARY.a", PROGRAM),
    Link("static PIE, C", C, "-static-pie @ -l:libLIBRARY.a -lstdc++", PROGRAM),
    Link("static PIE, C++", CXX, "-static-pie @ -l:libLIBRARY.a", PROGRAM),
]


def compiler(link, arguments):
    return [arguments.cc if link.source.endswith(".c") else arguments.cxx, "-O2", "-g", "-pthread"]


def compile_command(link, arguments):
    """All but what object it makes. What the compiler, unlike the linker, may make something of is in it."""
    command = [*compiler(link, arguments), "-Wall", "-Werror", "-fno-builtin", "-c",
               str(SOURCES / link.source)]
    if link.source.endswith(".cc"):
        command.append("-std=c++17")
    if link.is_static:
        command.append("-DFULLY_STATIC")
    return command + [argument for argument in link.arguments.split()
                      if argument.startswith("-") and not argument.startswith(("-l", "-Wl,"))]


def link_command(link, library, made, program, arguments):
    command = [*compiler(link, arguments), f"-L{arguments.library_dir}"]
    if link.is_static:
        # The table by which stacks are walked, which static programs lack otherwise.
        command.append("-Wl,--eh-frame-hdr")
    else:
        command.append(f"-Wl,-rpath,{arguments.library_dir}")
    for argument in link.arguments.replace(LIBRARY, library).split():
        command.append(str(made) if argument == "@" else argument)
    return command + ["-ldl", "-o", str(program)]


def origin(link, library):
    """Where malloc must come from. Every program refers to __libc_start_main, which libtcmalloc has
    for its leak checker, so that --as-needed always keeps it."""
    return SHARED if link.malloc == LIBC and library == "tcmalloc" else link.malloc


def expected_line(link, library, program):
    malloc = origin(link, library)
    file = {PROGRAM: "unknown" if link.is_static else program.name,
            SHARED: f"lib{library}.so.4"}.get(malloc, malloc)
    ours = "no" if malloc == LIBC else "yes"
    new = f" new: {file};" if link.source == CXX else ""
    return f"malloc: {file};{new} tc_version: {ours}\n"


def has_libc_malloc(program):
    """_int_malloc is a local function of libc's malloc.o; nothing else brings it in."""
    symbols = subprocess.run(["nm", str(program)], check=True, capture_output=True, text=True)
    return any(line.split()[-1] == "_int_malloc" for line in symbols.stdout.splitlines())


def build(link, library, objects, program, arguments):
    """Compiles what no link before has compiled in the same way, and links it. Returns what is wrong, or None."""
    command = compile_command(link, arguments)
    made = objects.get(tuple(command))
    if not made:
        made = program.with_name(f"object_{len(objects)}.o")
        compiled = subprocess.run([*command, "-o", str(made)], capture_output=True, text=True,
                                  timeout=TIMEOUT_SECONDS)
        if compiled.returncode != 0:
            return "does not compile:\n" + compiled.stderr
        objects[tuple(command)] = made
    linked = subprocess.run(link_command(link, library, made, program, arguments),
                            capture_output=True, text=True, timeout=TIMEOUT_SECONDS)
    return "does not link:\n" + linked.stderr if linked.returncode != 0 else None


def check(link, library, objects, program, arguments):
    """Returns what is wrong, or None."""
    problem = build(link, library, objects, program, arguments)
    if problem:
        return problem
    if link.is_static and has_libc_malloc(program):
        return "libc's own malloc is linked as well"
    variables = {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}
    # Nearly every block is a sample, those of libc's first steps among them.
    variables["TCMALLOC_SAMPLE_PARAMETER"] = "64"
    ran = subprocess.run([str(program)], capture_output=True, text=True, env=variables,
                         timeout=TIMEOUT_SECONDS)
    if ran.returncode != 0:
        return f"ends with {ran.returncode}:\n{ran.stderr}"
    if ran.stdout != expected_line(link, library, program):
        return f"says    {ran.stdout}instead {expected_line(link, library, program)}"
    return None


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library-dir", default=os.environ.get("TCM_TEST_LIBRARY_DIR"))
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    arguments = parser.parse_args()
    if not arguments.library_dir:
        parser.error("no --library-dir")
    failures = 0
    # By the command that compiles them.
    objects = {}
    with tempfile.TemporaryDirectory(prefix="tcm_linking_") as directory:
        for library, link in itertools.product(LIBRARIES, LINKS):
            problem = check(link, library, objects, pathlib.Path(directory) / "program", arguments)
            print(f"{library:<17} {link.name:<40} {'FAILED' if problem else 'ok'}", flush=True)
            if problem:
                failures += 1
                print(problem, flush=True)
    tried = len(LIBRARIES) * len(LINKS)
    print(f"{tried - failures} of {tried} as expected")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
