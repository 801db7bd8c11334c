# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Commands that a check runs, and what it says when they fail."""

import os
import subprocess

TIMEOUT_SECONDS = 200
# What would lead a program or a build to another library than the one that is checked.
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
