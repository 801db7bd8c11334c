# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
"""CMake refuses a layer that depends on something above it."""

import shutil
import subprocess
import unittest
from pathlib import Path

from tree import TreeTest

PROJECT = Path(__file__).resolve().parent.parent.parent


@unittest.skipUnless(shutil.which("cmake"), "cmake is missing")
class CMakeLayersTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("src/LAYERS", "# top to bottom\nheap\npages\nbase\n")

    def configure(self, declarations: str) -> subprocess.CompletedProcess:
        self.write("CMakeLists.txt", f"""
            cmake_minimum_required(VERSION 3.25)
            project(layers LANGUAGES NONE)
            include("{PROJECT}/cmake/Layers.cmake")
            {declarations}
        """)
        command = ["cmake", "-S", str(self.root), "-B", str(self.root / "build")]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    def assert_refused(self, declarations: str, reason: str):
        result = self.configure(declarations)
        self.assertNotEqual(result.returncode, 0)
        self.assertIn(reason, " ".join(result.stderr.split()))

    def test_accepts_dependencies_that_point_down(self):
        result = self.configure("""
            tcm_layer(NAME base)
            tcm_layer(NAME pages DEPENDS base)
            tcm_layer(NAME heap/limits DEPENDS base)
            tcm_layer(NAME heap/classic DEPENDS heap/limits pages)
        """)
        self.assertEqual(result.returncode, 0, result.stderr)

    def test_refuses_a_dependency_that_points_up(self):
        self.assert_refused("""
            tcm_layer(NAME heap)
            tcm_layer(NAME base DEPENDS heap)
        """, "'base' may not depend on 'heap', which stands above it")

    def test_refuses_a_dependency_that_is_not_declared(self):
        self.assert_refused("tcm_layer(NAME pages DEPENDS base)", "which is not declared yet")

    def test_refuses_a_folder_that_has_no_place(self):
        self.assert_refused("tcm_layer(NAME elsewhere)", "'elsewhere' is not in src/LAYERS")

    def test_hands_on_the_layers_below(self):
        result = self.configure("""
            tcm_layer(NAME base)
            tcm_layer(NAME pages DEPENDS base)
            tcm_layer(NAME heap DEPENDS pages)
            get_target_property(closure tcm_heap TCM_CLOSURE)
            message(NOTICE "closure: ${closure}")
        """)
        self.assertIn("closure: heap;pages;base", result.stderr)


if __name__ == "__main__":
    unittest.main()
