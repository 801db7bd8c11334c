#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks that the heap profile of a program that leaks has the labels of suspects, and that of its start none."""

import gzip
import os
import pathlib
import subprocess
import sys
import tempfile

PROGRAM = pathlib.Path(os.environ["TCM_TEST_BIN_DIR"]) / "tests/leak_suspects"
LABELS = (b"\x03age", b"\x04leak", b"\x07suspect", b"\x0bleak_growth", b"\x0fleak_confidence", b"\x0cmilliseconds")


def profile_of(words, folder):
    path = os.path.join(folder, "suspects.pb.gz")
    subprocess.run(words, env={**os.environ, "TCMALLOC_SAMPLE_PARAMETER": "32K", "TCMALLOC_HEAP_PROFILE": path},
                   check=True, timeout=60)
    return gzip.decompress(pathlib.Path(path).read_bytes())


def main():
    with tempfile.TemporaryDirectory() as folder:
        leaking = profile_of([PROGRAM], folder)
        steady = profile_of([PROGRAM, "0"], folder)
    missing = [label for label in LABELS if label not in leaking]
    if missing or b"\x07suspect" in steady or b"\x03age" not in steady:
        print(f"the profile of the leak lacks {missing}; of no leak: {steady!r}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
