#!/usr/bin/env python3
# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Profiles programs by the environment alone, and reads the files that they leave.

A program spends known shares of CPU time in functions, threads and short threads: each share of the
profile is within three standard deviations. Python keeps its handler of SIGPROF. google-pprof, and a
program that was built with gperftools, are tried where they are installed.
"""

import argparse
import gzip
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time

TIMEOUT_SECONDS = 120
MILLISECONDS = 1500
ATTEMPTS = 3
BUSY_ATTEMPTS = 3
# The first thread's share of time without a CPU from which a machine is called busy.
BUSY = 0.1
# The kernel signals at its clock tick, on a busy machine once in many, and what passes after the last
# signal is in no profile: a longer run loses less of it.
LONGER = (1, 4, 16)
WORD = struct.calcsize("P")


class Profile:
    """A file in the binary format of gperftools."""

    def __init__(self, path):
        data = path.read_bytes()
        words = struct.unpack(f"{len(data) // WORD}P", data[: len(data) // WORD * WORD])
        assert words[:3] == (0, 3, 0) and words[4] == 0, f"header {words[:5]}"
        self.period_us = words[3]
        self.stacks = []
        at = 5
        while words[at] != 0:
            count, depth = words[at : at + 2]
            self.stacks.append((count, words[at + 2 : at + 2 + depth]))
            at += 2 + depth
        assert words[at : at + 3] == (0, 1, 0), f"trailer {words[at : at + 3]}"
        self.maps = data[(at + 3) * WORD :].decode()
        assert self.maps.endswith("\n"), "cut mappings"

    def samples(self):
        return sum(count for count, _ in self.stacks)

    def base_of(self, program):
        """The address to which the first byte of the program's file is mapped."""
        for line in self.maps.splitlines():
            fields = line.split()
            if fields[-1] == str(program) and int(fields[2], 16) == 0:
                return int(fields[0].split("-")[0], 16)
        raise AssertionError(f"{program} is not among the mappings")

    def samples_in(self, low, high):
        return sum(count for count, stack in self.stacks if any(low < pc <= high for pc in stack))


def run(command, environment, **options):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False,
                          timeout=TIMEOUT_SECONDS, env={**os.environ, **environment}, **options)
    assert done.returncode == 0, f"{command}: status {done.returncode}\n{done.stderr}"
    return done


def functions_of(program):
    """Name to the first and last address of each function, from the beginning of the file."""
    listed = run(["nm", "-S", program], {}).stdout.splitlines()
    found = {}
    for line in listed:
        fields = line.split()
        if len(fields) == 4 and fields[2] in "tT":
            start = int(fields[0], 16)
            found[fields[3]] = (start, start + int(fields[1], 16))
    return found


def share_problems(program, profile, spent):
    base = profile.base_of(program)
    functions = functions_of(program)
    total = sum(spent.values())
    counts = {name: profile.samples_in(*(base + offset for offset in functions[name])) for name in spent}
    samples = sum(counts.values())
    problems = []
    if abs(samples * profile.period_us / 1000 - total) > 0.1 * total:
        problems.append(f"{samples} samples for {total} ms")
    for name, milliseconds in spent.items():
        share = milliseconds / total
        allowed = 3 * math.sqrt(samples * share * (1 - share))
        if abs(counts[name] - samples * share) > allowed:
            problems.append(f"{name}: {counts[name]} of {samples}, expected {samples * share:.0f} ± {allowed:.0f}")
    return problems


def check_shares(arguments, folder):
    """One in three hundred right figures is out of three deviations, so that a run may be repeated.

    The kernel looks at timers at its clock tick. On a busy machine threads take turns at that tick, so
    that it meets some of them more often than their time demands: such a run proves nothing.
    """
    problems = []
    quiet = 0
    for attempt in range(ATTEMPTS + BUSY_ATTEMPTS):
        path = folder / f"shares{attempt}.prof"
        printed = run([arguments.program, "all", MILLISECONDS],
                      {"LD_PRELOAD": arguments.library, "CPUPROFILE": str(path)}).stdout
        spent = {name: float(value) for name, value in (line.split() for line in printed.splitlines())}
        waited = spent.pop("waited")
        problems = share_problems(arguments.program, Profile(path), spent)
        if not problems:
            check_google_pprof(arguments, path)
            return
        print(f"again: waited {waited:.2f},", *problems)
        quiet += waited < BUSY
        if quiet == ATTEMPTS:
            raise AssertionError(str(problems))
    print("shares: not judged, because the machine is busy")


def check_google_pprof(arguments, path):
    reader = shutil.which("google-pprof")
    if reader is None:
        print("google-pprof is not installed")
        return
    shown = run([reader, "--text", arguments.program, path], {}).stdout
    assert f"Total: {Profile(path).samples()} samples" in shown, shown


def check_samples(samples_in, milliseconds, low, high=math.inf):
    """Some run has between low and high samples in so many milliseconds of its time."""
    counted = []
    for factor in LONGER:
        counted.append(samples_in(factor * milliseconds) / factor)
        if low <= counted[-1] <= high:
            return
    raise AssertionError(f"{counted} samples in {milliseconds} ms, of at least {low} and at most {high}")


def check_script(arguments, path, script, milliseconds, low):
    """Some run of a script that gets its time in seconds as an argument has so many samples."""

    def samples_in(milliseconds):
        run([sys.executable, "-c", script, milliseconds / 1000],
            {"LD_PRELOAD": arguments.library, "CPUPROFILE": str(path)})
        return Profile(path).samples()

    check_samples(samples_in, milliseconds, low)


def check_formats(arguments, folder):
    path = folder / "named.pb.gz"
    variables = {"LD_PRELOAD": arguments.library, "CPUPROFILE_FREQUENCY": "4000"}
    run([arguments.program, "functions", 300], {**variables, "CPUPROFILE": str(path)})
    assert b"nanoseconds" in gzip.decompress(path.read_bytes())
    path = folder / "asked"
    run([arguments.program, "functions", 50],
        {**variables, "CPUPROFILE": str(path), "TCMALLOC_PROFILE_FORMAT": "proto"})
    assert b"nanoseconds" in gzip.decompress(path.read_bytes())
    path = folder / "fast.prof"

    def samples_in(milliseconds):
        run([arguments.program, "functions", milliseconds], {**variables, "CPUPROFILE": str(path)})
        profile = Profile(path)
        assert profile.period_us == 250
        return profile.samples()

    # The kernel looks at its timers less often, but tells how many periods have passed.
    check_samples(samples_in, 500, low=1200, high=2600)


def check_wall_clock(arguments, folder):
    path = folder / "wall.prof"
    run([sys.executable, "-c", "import time; time.sleep(0.5)"],
        {"LD_PRELOAD": arguments.library, "CPUPROFILE": str(path), "CPUPROFILE_REALTIME": "1"})
    assert Profile(path).samples() >= 30, Profile(path).samples()


def check_python(arguments, folder):
    """Python's handler of the signal works, and to reset it does not end the process."""
    path = folder / "python.prof"
    script = (
        "import os, signal, sys, time\n"
        "heard = []\n"
        "assert signal.getsignal(signal.SIGPROF) in (signal.SIG_DFL, None)\n"
        "signal.signal(signal.SIGPROF, lambda number, frame: heard.append(number))\n"
        "os.kill(os.getpid(), signal.SIGPROF)\n"
        "for _ in range(100000): pass\n"
        "assert heard == [signal.SIGPROF], heard\n"
        "signal.signal(signal.SIGPROF, signal.SIG_DFL)\n"
        "end = time.process_time() + float(sys.argv[1])\n"
        "while time.process_time() < end: pass\n"
    )
    check_script(arguments, path, script, 300, low=15)


def check_interval_timer(arguments, folder):
    """A program's own timer of CPU time, which sends the same signal, ticks beside the profiler's."""
    path = folder / "interval.prof"
    script = (
        "import signal, sys, time\n"
        "heard = []\n"
        "signal.signal(signal.SIGPROF, lambda number, frame: heard.append(number))\n"
        "signal.setitimer(signal.ITIMER_PROF, 0.01, 0.01)\n"
        "end = time.process_time() + float(sys.argv[1])\n"
        "while time.process_time() < end or len(heard) < 5: pass\n"
        "signal.setitimer(signal.ITIMER_PROF, 0)\n"
    )
    check_script(arguments, path, script, 300, low=15)


def check_ends(arguments, folder):
    """A process that ends without exit handlers leaves its profile, and children of vfork that do so
    leave it alone."""
    path = folder / "ends.prof"
    script = (
        "import os, subprocess, sys, time\n"
        "seconds = float(sys.argv[1])\n"
        f"if os.path.exists({str(path)!r}): os.unlink({str(path)!r})\n"
        "end = time.process_time() + 2 / 3 * seconds\n"
        "while time.process_time() < end: pass\n"
        "try: subprocess.run(['/nonexistent/program'])\n"
        "except FileNotFoundError: pass\n"
        f"assert not os.path.exists({str(path)!r})\n"
        "end = time.process_time() + seconds / 3\n"
        "while time.process_time() < end: pass\n"
        "os._exit(0)\n"
    )
    check_script(arguments, path, script, 300, low=15)


def marked_by_gperftools(path):
    """Returns a path as gperftools leaves it in the environment for programs that are started."""
    name = os.fsencode(path)
    return os.fsdecode(bytes([name[0] | 0x80]) + name[1:])


def check_children(arguments, folder):
    """A program that the profiled one starts has a file of its own."""
    path = folder / "parent.prof"

    def samples_in(milliseconds):
        script = f"import subprocess; subprocess.run(['{arguments.program}', 'functions', '{milliseconds}'], check=True)"
        run([sys.executable, "-c", script], {"LD_PRELOAD": arguments.library, "CPUPROFILE": str(path)})
        children = list(folder.glob("parent.prof_*"))
        assert path.exists() and len(children) == 1, list(folder.iterdir())
        samples = Profile(children[0]).samples()
        children[0].unlink()
        return samples

    check_samples(samples_in, 300, low=1)
    path = folder / "exec.prof"
    run(["sh", "-c", f"exec {arguments.program} functions 100"],
        {"LD_PRELOAD": arguments.library, "CPUPROFILE": str(path)})
    assert len(list(folder.glob("exec.prof*"))) == 1
    path = folder / "marked.prof"
    run([arguments.program, "functions", "100"],
        {"LD_PRELOAD": arguments.library, "CPUPROFILE": marked_by_gperftools(path)})
    children = list(folder.glob("marked.prof*"))
    assert len(children) == 1 and re.fullmatch(r"marked\.prof_\d+", children[0].name), children


def check_forks(arguments, folder):
    """Workers that Python forks, and that end by _exit, have files of their own if that is asked for."""
    path = folder / "forks.prof"
    script = (
        "import multiprocessing, sys, time\n"
        "def work():\n"
        "    end = time.process_time() + float(sys.argv[1])\n"
        "    while time.process_time() < end: pass\n"
        "context = multiprocessing.get_context('fork')\n"
        "workers = [context.Process(target=work) for _ in range(3)]\n"
        "for worker in workers: worker.start()\n"
        "for worker in workers: worker.join()\n"
        "assert all(worker.exitcode == 0 for worker in workers)\n"
    )
    variables = {"LD_PRELOAD": str(arguments.library), "CPUPROFILE": str(path)}
    run([sys.executable, "-c", script, 0.1], variables)
    assert len(list(folder.glob("forks*"))) == 1, list(folder.iterdir())

    def least_samples_in(milliseconds):
        run([sys.executable, "-c", script, milliseconds / 1000], {**variables, "CPUPROFILE_FOLLOW_FORKS": "1"})
        children = list(folder.glob("forks.prof_*"))
        assert len(children) == 3, list(folder.iterdir())
        samples = [Profile(child).samples() for child in children]
        for child in children:
            child.unlink()
        return min(samples)

    check_samples(least_samples_in, 200, low=8)


def check_toggle(arguments, folder):
    path = folder / "toggled"
    environment = {**os.environ, "LD_PRELOAD": str(arguments.library), "CPUPROFILE": str(path),
                   "CPUPROFILESIGNAL": str(int(signal.SIGUSR2))}
    script = "print(flush=True)\nwhile True: pass"
    with subprocess.Popen([sys.executable, "-c", script], env=environment, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        for _ in range(2):
            process.send_signal(signal.SIGUSR2)
            time.sleep(0.3)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not (folder / "toggled.0").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        process.kill()
    assert Profile(folder / "toggled.0").samples() >= 0


def check_signals_of_faults(arguments, folder):
    """A fault ends the program, and is no signal that starts a profile."""
    crash = "import ctypes; ctypes.string_at(1)"
    environment = {**os.environ, "LD_PRELOAD": str(arguments.library), "CPUPROFILE": str(folder / "fault"),
                   "CPUPROFILESIGNAL": str(int(signal.SIGSEGV))}
    done = subprocess.run([sys.executable, "-c", crash], env=environment, capture_output=True, text=True,
                          check=False, timeout=TIMEOUT_SECONDS)
    assert done.returncode == -signal.SIGSEGV, (done.returncode, done.stderr)
    assert "CPUPROFILESIGNAL: signal 11 cannot be used" in done.stderr, done.stderr


def check_query(arguments, folder):
    """libtcmalloc, in front of libprofiler, tells what the profiler says."""
    allocator = arguments.library.parent / "libtcmalloc.so.4"
    if not arguments.library.name.startswith("libprofiler") or not allocator.exists():
        return
    script = "import ctypes; print(ctypes.CDLL(None).ProfilingIsEnabledForAllThreads())"
    both = f"{allocator}:{arguments.library}"
    for library, path, expected in ((allocator, "", "0"), (both, "", "0"), (both, folder / "query", "1")):
        variables = {"LD_PRELOAD": str(library), "CPUPROFILE": str(path)}
        printed = run([sys.executable, "-c", script], variables).stdout.strip()
        assert printed == expected, (library, path, printed)


def check_gperftools(arguments, folder):
    libraries = pathlib.Path(f"/usr/lib/{platform.machine()}-linux-gnu")
    if arguments.library.name.startswith("libprofiler") and (libraries / "libprofiler.so").exists():
        program = folder / "program"
        run([arguments.cxx, "-std=c++20", "-O1", arguments.built_by_gperftools, "-Wl,--no-as-needed",
             f"-L{libraries}", "-lprofiler", "-o", program], {})
        path = folder / "gperftools.prof"
        run([program, path], {"LD_LIBRARY_PATH": str(arguments.library.parent), "LD_BIND_NOW": "1"})
        assert Profile(path).samples() > 0
    else:
        print("not built with gperftools")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--library", type=pathlib.Path, required=True)
    parser.add_argument("--program", type=pathlib.Path, required=True)
    parser.add_argument("--cxx", default="c++")
    parser.add_argument("--built-by-gperftools", type=pathlib.Path, required=True)
    arguments = parser.parse_args()
    for check in (check_shares, check_formats, check_wall_clock, check_python, check_interval_timer,
                  check_ends, check_children, check_forks, check_toggle,
                  check_signals_of_faults, check_query, check_gperftools):
        with tempfile.TemporaryDirectory(prefix="tcm_cpu_") as folder:
            print(check.__name__, flush=True)
            check(arguments, pathlib.Path(folder))
    return 0


if __name__ == "__main__":
    sys.exit(main())
