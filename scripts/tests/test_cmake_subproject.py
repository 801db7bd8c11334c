# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""A project that has this one as a folder gets its targets, and neither tests nor benchmarks."""

import shutil
import subprocess
import unittest
from pathlib import Path

from tree import TreeTest

PROJECT = Path(__file__).resolve().parent.parent.parent
TARGETS = [
    f"tcmalloc::{name}{kind}"
    for name in ("tcmalloc", "tcmalloc_minimal")
    for kind in ("", "_static")
]


@unittest.skipUnless(shutil.which("cmake") and shutil.which("ninja"), "cmake or ninja is missing")
class CMakeSubprojectTest(TreeTest):
    def run_quietly(self, *command) -> str:
        result = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        self.assertEqual(result.returncode, 0, result.stdout + result.stderr)
        return result.stdout

    def test_offers_targets_alone(self):
        self.write("main.c", "int main(void) { return 0; }\n")
        programs = "\n".join(
            f"add_executable(app{i} main.c)\ntarget_link_libraries(app{i} PRIVATE {target})"
            for i, target in enumerate(TARGETS)
        )
        self.write("CMakeLists.txt", f"""
            cmake_minimum_required(VERSION 3.25)
            project(app LANGUAGES C CXX)
            add_subdirectory("{PROJECT}" tcmalloc)
            {programs}
        """)
        build = str(self.root / "build")
        self.run_quietly("cmake", "-G", "Ninja", "-S", str(self.root), "-B", build)
        targets = self.run_quietly("ninja", "-C", build, "-t", "targets", "all")
        self.assertIn("libtcmalloc_minimal.so", targets)
        self.assertIsNone(self.first_match(targets, ("unit_", "tests/", "bench/")))

    @staticmethod
    def first_match(text: str, parts: tuple[str, ...]) -> str | None:
        return next((line for line in text.splitlines() if any(p in line for p in parts)), None)


if __name__ == "__main__":
    unittest.main()
