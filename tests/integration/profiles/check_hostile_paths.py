#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Lets a program write profiles where that cannot be done or must not: each attempt costs one line
on stderr, the program goes on, and nothing but a whole profile is there."""

import argparse
import os
import pathlib
import resource
import shutil
import subprocess
import sys
import tempfile
import threading

TINY_DISK = 'mount -t tmpfs -o size=16k none "$1" && shift && exec "$@"'


class Checker:
    def __init__(self, probe, folder):
        self.probe = probe
        self.folder = pathlib.Path(folder)
        self.failures = 0

    def run(self, paths, prefix=(), program=None, **settings):
        return subprocess.run([*prefix, program or self.probe, *map(str, paths)],
                              stdout=subprocess.PIPE, text=True, timeout=120,
                              env={**os.environ, "TCMALLOC_SAMPLE_PARAMETER": "1"},
                              **{"stderr": subprocess.PIPE, **settings})

    def expect(self, what, true, result):
        print(f"{'passed' if true else 'FAILED'}: {what}")
        if not true:
            self.failures += 1
            print(f"status {result.returncode}, stdout {result.stdout!r}, stderr {result.stderr!r}")

    def expect_refused(self, what, path, **settings):
        before = sorted(self.folder.rglob("*"))
        result = self.run([path], **settings)
        self.expect(what, result.returncode == 0 and result.stdout == "0\n" and
                    result.stderr.count("\n") == 1 and
                    before == sorted(self.folder.rglob("*")), result)

    def check_paths(self):
        (self.folder / "target").write_text("old")
        (self.folder / "link").symlink_to("target")
        (self.folder / "dangling").symlink_to("nothing")
        (self.folder / "directory").mkdir()
        os.mkfifo(self.folder / "fifo")
        for name in ("link", "dangling", "directory", "fifo", "missing/a", "a" * 300, "a/" * 2048,
                     "target/a", "."):
            for suffix in ("", ".pb.gz") if name == "missing/a" else ("",):
                self.expect_refused(f"path {name[:20]}{suffix}", self.folder / f"{name}{suffix}")
        self.expect_refused("the empty path", "")
        result = self.run([self.folder / "100%s%n.heap", self.folder / "100%s%n.pb.gz"])
        self.expect("a path with percent signs", result.stdout == "1\n1\n" and not result.stderr,
                    result)
        for path in self.folder.glob("100*"):
            self.expect("mode 0600", path.stat().st_mode & 0o777 == 0o600, result)
            path.unlink()

    def check_limit(self):
        """The limit is that of stderr's file as well."""
        log = self.folder / "log"
        for suffix in (".heap", ".pb.gz"):
            with log.open("w") as stderr:
                stderr.write("x" * 9000)
                stderr.flush()
                self.expect_limited(suffix, stderr)
        log.unlink()

    def expect_limited(self, suffix, stderr):
        limit = (8192, 8192)
        result = self.run([self.folder / f"limited{suffix}"] * 2, stderr=stderr,
                          preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, limit))
        left = list(self.folder.glob("limited*"))
        self.expect(f"RLIMIT_FSIZE, {suffix}",
                    result.returncode == 0 and result.stdout == "0\n0\n" and not left, result)

    def check_full_disk(self):
        disk = self.folder / "disk"
        disk.mkdir()
        prefix = ["unshare", "-rm", "sh", "-c", TINY_DISK, "sh", str(disk)]
        if not shutil.which("unshare") or subprocess.run([*prefix, "true"], check=False,
                                                         capture_output=True).returncode != 0:
            print("left out: no file system can be mounted here")
            return
        for suffix in (".heap", ".pb.gz"):
            self.expect_refused(f"a full disk, {suffix}", disk / f"a{suffix}", prefix=prefix)

    def check_removal(self):
        """Another process removes what it finds while profiles are written."""
        folder = self.folder / "swept"
        folder.mkdir()
        done = threading.Event()

        def sweep():
            while not done.is_set():
                for path in folder.iterdir():
                    path.unlink(missing_ok=True)

        sweeper = threading.Thread(target=sweep)
        sweeper.start()
        result = self.run([folder / "a.heap", folder / "a.pb.gz"] * 5)
        done.set()
        sweeper.join()
        refused = result.stdout.count("0\n")
        self.expect("files removed while they are written", result.returncode == 0 and
                    len(result.stdout) == 20 and result.stderr.count("\n") == refused, result)
        shutil.rmtree(folder)

    def check_read_only(self):
        if os.geteuid() == 0:
            print("left out: root may write to every folder")
            return
        folder = self.folder / "read-only"
        folder.mkdir(0o500)
        self.expect_refused("a folder that is read-only", folder / "a")

    def check_privileges(self):
        """Root runs a program with the rights of another group, so that the kernel warns it."""
        if os.geteuid() != 0:
            print("left out: only root can make a program that has other rights")
            return
        program = self.folder / "privileged"
        shutil.copy(self.probe, program)
        os.chown(program, 0, 1)
        program.chmod(0o2755)
        self.expect_refused("raised privileges", self.folder / "secure.heap", program=program)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--probe", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="tcm_hostile_") as folder:
        checker = Checker(arguments.probe, folder)
        checker.check_paths()
        checker.check_limit()
        checker.check_full_disk()
        checker.check_removal()
        checker.check_read_only()
        checker.check_privileges()
    sys.exit(1 if checker.failures else 0)


if __name__ == "__main__":
    main()
