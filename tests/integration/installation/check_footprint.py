#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Checks what the shared library costs: the bytes of the stripped file, and of static TLS."""

import argparse
import pathlib
import re
import sys
import tempfile

from processes import expect, run, run_checks


def check_tls(library, most):
    """libc keeps less than two kilobytes for all libraries that a program loads by dlopen."""
    headers = run("readelf", "-W", "-l", library)
    sizes = [int(row.split()[5], 16) for row in headers.splitlines() if row.split()[:1] == ["TLS"]]
    print(f"thread-local storage: {sum(sizes)} bytes")
    expect(len(sizes) == 1 and sizes[0] <= most, f"more than {most}")
    flags = run("readelf", "-W", "-d", library)
    expect(re.search(r"\(FLAGS\).*STATIC_TLS", flags), "the library's TLS is not static")


def check_size(library, most):
    with tempfile.TemporaryDirectory(prefix="tcm_footprint_") as folder:
        stripped = pathlib.Path(folder) / "stripped.so"
        run("strip", "-o", stripped, library)
        size = stripped.stat().st_size
    print(f"stripped: {size} bytes of {most}")
    expect(size < most, f"{size - most} bytes too many")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("library", type=pathlib.Path)
    parser.add_argument("--most-tls-bytes", type=int, required=True)
    parser.add_argument("--most-bytes", type=int, help="of the stripped file")
    arguments = parser.parse_args()
    checks = [("check_tls", lambda: check_tls(arguments.library, arguments.most_tls_bytes))]
    if arguments.most_bytes:
        checks.append(("check_size", lambda: check_size(arguments.library, arguments.most_bytes)))
    return run_checks(checks)


if __name__ == "__main__":
    sys.exit(main())
