#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Runs real programs on glibc's malloc and on ours and compares what they do.

Every entry of programs.PROGRAMS runs several times in a fresh directory of the same name, once
without and once with each library in LD_PRELOAD. Standard output, standard error and exit status
must be identical. The dynamic linker's own log shows that the named programs really ran on the
library.
Programs that are not installed are skipped and counted; too few left over is a failure.

TCM_KEPT_BASELINES names a folder that lasts as long as nothing of the system changes, such as one run of ./test.
What programs do on glibc is kept there, and taken from there by this script's next run.
"""

import argparse
import concurrent.futures
import contextlib
import dataclasses
import difflib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time

import programs

LIBRARY_NAME = "libtcmalloc_minimal.so.4"  # the library by default


@dataclasses.dataclass
class Outcome:
    """What one run of one program did."""

    stdout: str
    stderr: str
    status: str
    seconds: float
    # Base names of the programs that ran with the library loaded.
    on_library: set


@dataclasses.dataclass
class Verdict:
    name: str
    result: str  # "same", "skipped" or "DIFFERENT"
    detail: str = ""
    baseline_seconds: float = 0.0
    library_seconds: tuple = ()  # None for a library that the program does not run on


def write_inputs(directory):
    """The data that the programs work on; the same in every run of this script."""
    generator = random.Random(20)
    directory.mkdir()
    vocabulary = ["".join(generator.choices("abcdefghijklmnoprstuw", k=generator.randint(2, 11)))
                  for _ in range(5000)]
    with open(directory / "words.txt", "w", encoding="ascii") as words:
        for _ in range(40_000):
            words.write(" ".join(generator.choices(vocabulary, k=generator.randint(1, 9))) + "\n")
    with open(directory / "numbers.txt", "w", encoding="ascii") as numbers:
        for _ in range(100_000):
            numbers.write(f"{generator.randrange(10**9)}\n")
    (directory / "blob.bin").write_bytes(generator.randbytes(1_000_000) + bytes(2_000_000))
    tree = directory / "tree"
    for i in range(400):
        leaf = tree / f"d{i % 20}" / f"e{i % 7}"
        leaf.mkdir(parents=True, exist_ok=True)
        (leaf / f"f{i}.txt").write_text(" ".join(generator.choices(vocabulary, k=80)) + "\n")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def search_path():
    """The toolchains that live elsewhere first, because one must not find parts of another, then the system's programs."""
    found = [shutil.which(command) for command in programs.FOUND_ANYWHERE]
    directories = [os.path.dirname(path) for path in found if path]
    directories += ["/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"]
    return ":".join(dict.fromkeys(directories))


def environment(work, inputs, log, library):
    variables = {
        "PATH": search_path(),
        "HOME": str(work),
        "TMPDIR": str(log.parent / "tmp"),
        "INPUT": str(inputs),
        "LANG": "C.UTF-8",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "TERM": "dumb",
        "PORT": str(free_port()),
        # Each process writes what the dynamic linker does into LOG.PID.
        "LD_DEBUG": "files",
        "LD_DEBUG_OUTPUT": str(log / "ld"),
    }
    for name, default in programs.TOOLCHAIN_DIRECTORIES.items():
        variables[name] = os.environ.get(name, os.path.expanduser(default))
    if library:
        variables["LD_PRELOAD"] = str(library)
    return variables


def programs_on_library(log, library):
    """Reads the logs of the dynamic linker: who initialized the library and then ran."""
    found = set()
    initialized = re.compile(r"calling init: " + re.escape(str(library)) + r"$", re.MULTILINE)
    started = re.compile(r"transferring control: (.*)$", re.MULTILINE)
    for file in log.iterdir():
        text = file.read_text(errors="replace")
        if initialized.search(text):
            found.update(os.path.basename(name) for name in started.findall(text))
    return found


def normalized(program, text):
    for pattern, replacement in program.normalize:
        text = re.sub(pattern, replacement, text, flags=re.MULTILINE)
    return text


def run_once(program, scratch, inputs, library):
    work = scratch / "work"
    log = scratch / (f"log_{library.name}" if library else "log_baseline")
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir(parents=True)
    log.mkdir()
    (scratch / "tmp").mkdir(exist_ok=True)
    for name, content in program.files.items():
        (work / name).write_text(content)
    variables = environment(work, inputs, log, library)
    start = time.monotonic()
    process = subprocess.Popen(
        program.argv, cwd=work, env=variables, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, start_new_session=True)
    try:
        stdout, stderr = process.communicate(program.stdin.encode(), timeout=program.timeout)
        status = f"exit status {process.returncode}"
        if process.returncode < 0:
            status = f"killed by {signal.Signals(-process.returncode).name}"
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        stdout, stderr = process.communicate()
        status = f"no end within {program.timeout} s"
    else:
        # Ends processes that the program left behind in its session.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
    texts = [normalized(program, text.decode(errors="replace"))
             for text in (stdout, stderr)]
    return Outcome(*texts, status, time.monotonic() - start,
                   programs_on_library(log, library) if library else set())


def baseline_of(program, scratch, inputs, kept):
    """What it does on glibc. Where a folder is given, that is kept unless it is not as the table says."""
    file = kept / f"{program.name}.json" if kept else None
    if file and file.exists():
        return Outcome(**json.loads(file.read_text(encoding="utf-8")), on_library=set())
    outcome = run_once(program, scratch / program.name, inputs, None)
    if file and outcome.status == f"exit status {program.status}":
        fields = dataclasses.asdict(outcome)
        del fields["on_library"]
        # In one step, so that nobody reads a part of it.
        unfinished = file.with_suffix(".unfinished")
        unfinished.write_text(json.dumps(fields), encoding="utf-8")
        unfinished.rename(file)
    return outcome


def difference(kind, baseline, ours):
    lines = difflib.unified_diff(baseline.splitlines(), ours.splitlines(),
                                 f"{kind} on glibc", f"{kind} on the library", lineterm="", n=1)
    shown = list(lines)[:40]
    return "\n".join(shown)


def compare(program, baseline, ours):
    """Returns the reasons why the two runs are not the same."""
    reasons = []
    if baseline.status != f"exit status {program.status}":
        reasons.append(f"the test itself is broken: {baseline.status} on glibc\n{baseline.stderr}")
    if baseline.status != ours.status:
        reasons.append(f"{baseline.status} on glibc, {ours.status} on the library")
    for kind in ("stdout", "stderr"):
        if getattr(baseline, kind) != getattr(ours, kind):
            reasons.append(difference(kind, getattr(baseline, kind), getattr(ours, kind)))
    missing = sorted({os.path.basename(name) for name in program.loads} - ours.on_library)
    if missing:
        reasons.append("not on the library: " + " ".join(missing))
    return reasons


def run_program(program, scratch, inputs, libraries, left_out, kept):
    """Runs it on glibc, and on all libraries but those for which left_out has its name."""
    missing = [command for command in program.needs if not shutil.which(command, path=search_path())]
    if missing:
        return Verdict(program.name, "skipped", "not installed: " + " ".join(missing))
    baseline = baseline_of(program, scratch, inputs, kept)
    reasons = []
    seconds = []
    for library in libraries:
        if program.name in left_out.get(library, ()):
            seconds.append(None)
            continue
        ours = run_once(program, scratch / program.name, inputs, library)
        reasons += [f"{library.name}: {reason}" for reason in compare(program, baseline, ours)]
        seconds.append(ours.seconds)
    return Verdict(program.name, "DIFFERENT" if reasons else "same", "\n".join(reasons),
                   baseline.seconds, tuple(seconds))


def report(verdicts, libraries):
    print(f"\n{'program':<24}{'result':<12}{'glibc s':>9}  s on each of: "
          + " ".join(library.name for library in libraries))
    for verdict in verdicts:
        if verdict.result == "skipped":
            print(f"{verdict.name:<24}{verdict.result:<12}  {verdict.detail}")
        else:
            print(f"{verdict.name:<24}{verdict.result:<12}{verdict.baseline_seconds:>9.2f}"
                  + "".join(f"{'-':>9}" if seconds is None else f"{seconds:>9.2f}"
                            for seconds in verdict.library_seconds))
    counts = {result: sum(verdict.result == result for verdict in verdicts)
              for result in ("same", "DIFFERENT", "skipped")}
    print(f"\n{counts['same']} the same, {counts['DIFFERENT']} different, "
          f"{counts['skipped']} skipped because they are not installed")
    return counts


def default_library():
    directory = os.environ.get("TCM_TEST_LIBRARY_DIR")
    return pathlib.Path(directory) / LIBRARY_NAME if directory else None


@contextlib.contextmanager
def scratch_folder(kept):
    """A folder for the runs, whose path is the same each time where baselines, which may have it in them, are kept."""
    if not kept:
        with tempfile.TemporaryDirectory(prefix="tcm_programs_") as directory:
            yield pathlib.Path(directory)
        return
    directory = kept / "scratch"
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir(parents=True)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def kept_baselines():
    directory = os.environ.get("TCM_KEPT_BASELINES")
    return pathlib.Path(directory) if directory else None


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, default=default_library(),
                        help=f"default: $TCM_TEST_LIBRARY_DIR/{LIBRARY_NAME}")
    parser.add_argument("--also", type=pathlib.Path, metavar="LIBRARY",
                        help="another library that each program runs on")
    parser.add_argument("--leave-out-also", action="append", default=[], metavar="NAME",
                        help="a program that does not run on that one; may be repeated")
    parser.add_argument("--minimum", type=int, default=30,
                        help="fail when fewer programs could run (default: 30)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(),
                        help="programs at a time (default: one per CPU)")
    parser.add_argument("names", nargs="*", help="only these; no minimum then")
    arguments = parser.parse_args()
    arguments.libraries = [arguments.library, *([arguments.also] if arguments.also else [])]
    for library in arguments.libraries:
        if library is None or not library.exists():
            parser.error(f"no library: {library}")
    # The dynamic linker logs the path that it is given, so it must be stable.
    arguments.libraries = [library.absolute() for library in arguments.libraries]
    return arguments


def main():
    arguments = parse_arguments()
    chosen = [program for program in programs.PROGRAMS
              if not arguments.names or program.name in arguments.names]
    left_out = {arguments.libraries[-1]: arguments.leave_out_also} if arguments.also else {}
    kept = kept_baselines()
    with scratch_folder(kept) as scratch:
        inputs = scratch / "input"
        write_inputs(inputs)
        verdicts = []
        with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
            for verdict in pool.map(
                    lambda program: run_program(program, scratch, inputs, arguments.libraries,
                                                left_out, kept),
                    chosen):
                print(f"{len(verdicts) + 1}/{len(chosen)} {verdict.name}: {verdict.result}",
                      flush=True)
                if verdict.result == "DIFFERENT":
                    print(verdict.detail, flush=True)
                verdicts.append(verdict)
    counts = report(verdicts, arguments.libraries)
    executed = counts["same"] + counts["DIFFERENT"]
    if not arguments.names and executed < arguments.minimum:
        print(f"only {executed} programs ran, {arguments.minimum} are needed: "
              "install tests/integration/programs/packages.txt")
        return 1
    return 1 if counts["DIFFERENT"] or not executed else 0


if __name__ == "__main__":
    sys.exit(main())
