# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Commands that a check runs, and what it says when they fail."""

import os
import re
import subprocess

TIMEOUT_SECONDS = 600
# Variables that would lead a program or a build to another library than the one that is checked.
MISLEADING = ("LD_PRELOAD", "LD_LIBRARY_PATH", "PKG_CONFIG_PATH", "CMAKE_PREFIX_PATH", "DESTDIR",
              "PREFIX", "MAKEFLAGS", "CFLAGS", "CPPFLAGS", "LDFLAGS")


class Failure(Exception):
    """Something is not as it must be; the text says what."""


def expect(condition, text):
    if not condition:
        raise Failure(text)


def run(*command, text="", **variables):
    """Runs a command to its end and returns what it printed, both streams together."""
    environment = {name: value for name, value in os.environ.items() if name not in MISLEADING}
    environment.update({name: str(value) for name, value in variables.items()})
    words = [str(word) for word in command]
    ended = subprocess.run(words, input=text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, env=environment, timeout=TIMEOUT_SECONDS, check=False)
    expect(ended.returncode == 0,
           f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


def run_as_newcomer(*command, expected=0, **variables):
    """Runs a command from the root folder with next to no environment; returns both streams.

    A tool that finds what it needs through the working directory or through variables fails here.
    """
    environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/nonexistent", "LANG": "C"}
    environment.update({name: str(value) for name, value in variables.items()})
    words = [str(word) for word in command]
    ended = subprocess.run(words, input="", stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                           text=True, env=environment, cwd="/", timeout=TIMEOUT_SECONDS, check=False)
    expect(ended.returncode in (expected if isinstance(expected, tuple) else (expected,)),
           f"{' '.join(words)} ended with {ended.returncode}:\n{ended.stdout}")
    return ended.stdout


def check_tool(tool, library, out):
    """tcm as it is installed: run, doctor and bench of a program, outside of any checkout."""
    said = run_as_newcomer(tool, "run", "--", "cat", "/proc/self/maps")
    expect(str(library) in said, said)
    expect(" allocated" in said and "no figures" not in said and f"{tool} run --json" in said, said)
    said = run_as_newcomer(tool, "run", "true")
    expect("the program allocated nothing" in said, said)
    # 1: the doctor may find problems of this machine, but none with the library.
    said = run_as_newcomer(tool, "doctor", expected=(0, 1))
    expect(re.search(r"^(ok|note) +library ", said, re.M), said)
    said = run_as_newcomer(tool, "bench", "--allocators", "ours", "--runs", "1", "--out", out, "--",
                           "sort", "/etc/passwd")
    expect("ours" in said and (out / "samples.json").exists(), said)
    said = run_as_newcomer(tool, "run", "--library", tool, "true", expected=125)
    expect(said.startswith(f"tcm: cannot preload {tool}"), said)
    said = run_as_newcomer(tool, "--version")
    expect(re.fullmatch(r"tcm \d+\.\d+\.\d+ \(go.*\)\n", said), said)


def run_checks(checks):
    """Runs (name, function without arguments) in order; returns the exit status."""
    for name, check in checks:
        try:
            check()
        except Failure as failure:
            print(f"{name}: FAILED\n{failure}")
            return 1
        print(f"{name}: ok", flush=True)
    return 0
