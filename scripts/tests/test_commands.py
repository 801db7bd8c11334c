# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""Answers of ./run, ./test and the shell checks to bad input."""

import os
import shutil
import subprocess
import unittest
from pathlib import Path

from tree import TreeTest

PROJECT = Path(__file__).resolve().parent.parent.parent
LICENCE = "// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0\n"


def run(*command) -> subprocess.CompletedProcess:
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


class RunTest(TreeTest):
    def assert_refused(self, arguments: list[str], status: int, message: str):
        result = run(PROJECT / "run", *arguments)
        self.assertEqual(result.returncode, status, result.stderr)
        self.assertIn(message, result.stderr)

    def test_refuses_a_command_that_is_not_found(self):
        self.assert_refused(["no-such-command"], 127, "no-such-command: command not found")

    def test_refuses_a_path_that_does_not_exist(self):
        self.assert_refused([str(self.root / "gone")], 127, "gone: no such file")

    def test_refuses_what_cannot_be_executed(self):
        plain_file = self.write("plain", "text\n")
        self.assert_refused([str(plain_file)], 126, "plain: not executable")
        self.assert_refused([str(self.root)], 126, "is a directory")

    def test_refuses_an_unknown_option(self):
        self.assert_refused(["--no-such-option"], 2, "unknown option --no-such-option")
        self.assert_refused(["--"], 2, "no program after --")

    def test_has_a_usage_text(self):
        result = run(PROJECT / "run", "--help")
        self.assertEqual(result.returncode, 0)
        self.assertIn("usage: ./run [--json | --quiet]", result.stdout)


class BuildFolderTest(TreeTest):
    """Answers of scripts/common.sh to a folder that cannot be built in as it is."""

    def usable(self, **options) -> subprocess.CompletedProcess:
        script = f"root={self.root}; source {PROJECT}/scripts/common.sh; usable_folder release"
        return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60,
                              check=False, **options)

    def test_begins_anew_where_the_checkout_was_moved(self):
        self.write("build/release/CMakeCache.txt", "CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere\n")
        result = self.usable()
        self.assertEqual(result.returncode, 0)
        self.assertEqual(result.stderr.count("\n"), 1)
        self.assertIn("moved here from /elsewhere", result.stderr)
        self.assertFalse((self.root / "build/release").exists())

    def test_keeps_what_was_built_here(self):
        cache = self.write("build/release/CMakeCache.txt",
                           f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n")
        self.assertEqual(self.usable().stderr, "")
        self.assertTrue(cache.exists())

    def test_begins_anew_where_the_launcher_is_gone(self):
        self.write("build/release/CMakeCache.txt",
                   f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n"
                   "CMAKE_CXX_COMPILER_LAUNCHER:UNINITIALIZED=no-such-cache\n")
        result = self.usable()
        self.assertEqual(result.returncode, 0)
        self.assertIn("no-such-cache, which ran the compilers here, is gone", result.stderr)
        self.assertFalse((self.root / "build/release").exists())

    def test_keeps_what_a_launcher_that_is_there_has_built(self):
        cache = self.write("build/release/CMakeCache.txt",
                           f"CMAKE_HOME_DIRECTORY:INTERNAL={self.root}\n"
                           "CMAKE_CXX_COMPILER_LAUNCHER:STRING=env\n")
        self.assertEqual(self.usable().stderr, "")
        self.assertTrue(cache.exists())

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to become somebody else")
    def test_names_the_user_who_built_it(self):
        self.write("build/release/CMakeCache.txt", "")
        self.root.chmod(0o755)
        result = self.usable(user=65534, group=65534)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, r"^.*build belongs to root: run this as that user.*\n$")


class TestCommandTest(unittest.TestCase):
    def test_lists_its_steps(self):
        result = run(PROJECT / "test", "--list")
        self.assertEqual(result.returncode, 0)
        for step in ("layers", "tool", "release", "paranoid", "clang", "asan", "tsan"):
            self.assertRegex(result.stdout, rf"(?m)^{step} ")

    def test_refuses_what_it_does_not_know(self):
        for arguments in (["--no-such-option"], ["--preset", "no-such-preset"], ["--preset"]):
            with self.subTest(arguments):
                self.assertEqual(run(PROJECT / "test", *arguments).returncode, 2)


class TestBuildsTest(TreeTest):
    """Builds of ./test beside its tests, with commands that do nothing in place of cmake, ninja and ctest."""

    PASSED = "echo '100% tests passed, 0 tests failed out of 1'\n"

    def setUp(self):
        super().setUp()
        shutil.copy(PROJECT / "test", self.root)
        shutil.copy(PROJECT / "CMakePresets.json", self.root)
        self.write("scripts/common.sh", (PROJECT / "scripts/common.sh").read_text())
        self.fifo = self.root / "fifo"
        os.mkfifo(self.fifo)
        self.write_command("cmake", 'mkdir -p "build/$2"\n')
        self.write_command("ninja", "")
        self.write_command("ctest", self.PASSED)

    def write_command(self, name: str, text: str):
        self.write(f"bin/{name}", "#!/bin/bash\n" + text).chmod(0o755)

    def start(self) -> subprocess.Popen:
        command = [self.root / "test", "--no-setup", "--preset", "clang", "--preset", "fuzz"]
        environment = {**os.environ, "PATH": f"{self.root}/bin:{os.environ['PATH']}"}
        process = subprocess.Popen(command, env=environment, text=True, stdout=subprocess.PIPE,
                                   stderr=subprocess.STDOUT)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.terminate)
        return process

    def last_line(self) -> str:
        output, _ = self.start().communicate(timeout=60)
        return output.splitlines()[-1]

    def test_counts_builds_and_tests(self):
        self.assertEqual(self.last_line(), "4 passed, 0 failed")

    def test_goes_on_after_a_failed_build(self):
        self.write_command("ninja", "[[ $2 != */clang ]]\n")
        self.assertEqual(self.last_line(), "2 passed, 1 failed")

    def test_builds_the_next_preset_while_tests_run(self):
        self.write_command("ninja", f"[[ $2 != */fuzz ]] || echo built >{self.fifo}\n")
        self.write_command("ctest", f"[[ $2 != clang ]] || read -r -t 40 <>{self.fifo} || exit\n" + self.PASSED)
        self.assertEqual(self.last_line(), "4 passed, 0 failed")

    def test_ends_its_builds_with_itself(self):
        never = f"{self.fifo}.never"
        os.mkfifo(never)
        self.write_command("ninja", f"exec >{self.fifo}; echo started; read -r -t 40 <>{never}; echo left\n")
        command = self.start()
        with open(self.fifo, encoding="utf-8") as of_ninja:
            self.assertEqual(of_ninja.readline(), "started\n")
            command.terminate()
            # Reads to the end, when nobody is left who could write.
            self.assertEqual(of_ninja.read(), "")
        # Nor does anybody else keep its output open.
        command.communicate(timeout=30)


@unittest.skipUnless(shutil.which("clang-format-19"), "clang-format-19 is missing")
class CheckFormatTest(TreeTest):
    def setUp(self):
        super().setUp()
        shutil.copytree(PROJECT / "scripts", self.root / "scripts")
        shutil.copy(PROJECT / ".clang-format", self.root)
        shutil.rmtree(self.root / "scripts/tests")

    def check(self, *arguments) -> int:
        return run(self.root / "scripts/check_format.sh", *arguments).returncode

    def test_finds_and_mends_a_badly_formatted_file(self):
        source = self.write("src/base/x.cc", LICENCE + "int  f( ) ;\n")
        self.assertEqual(self.check(), 1)
        self.assertEqual(self.check("--fix"), 0)
        self.assertEqual(source.read_text(), LICENCE + "int f();\n")
        self.assertEqual(self.check(), 0)

    @unittest.skipUnless(shutil.which("go"), "Go is missing")
    def test_finds_a_badly_formatted_go_file(self):
        self.write("tool/x.go", LICENCE + "package x\nvar  y int\n")
        self.assertEqual(self.check(), 1)


if __name__ == "__main__":
    unittest.main()
