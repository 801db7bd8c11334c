# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_layers


class CheckLayersTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("src/LAYERS", "# top to bottom\nheap\npages\nbase\n")
        self.write("src/base/bits.h", "#include <cstdint>\n")
        self.write("src/base/list.h", '#include "base/bits.h"\n')
        self.write("src/base/CMakeLists.txt", "tcm_layer(NAME base)\n")
        self.write("src/pages/span.h", '#include "base/list.h"\n')
        self.write("src/pages/CMakeLists.txt", "tcm_layer(NAME pages DEPENDS base)\n")
        self.write("src/heap/heap.cc", '#include "pages/span.h"\n#include "base/bits.h"\n')
        self.write("src/heap/CMakeLists.txt", "tcm_layer(NAME heap SOURCES heap.cc DEPENDS pages)\n")

    def check(self):
        return check_layers.check(self.root)

    def test_accepts_a_sound_tree(self):
        self.assertEqual(self.check(), [])

    def test_finds_an_include_that_points_upward(self):
        self.write("src/base/bits.h", '#include "heap/api.h"\n')
        self.write("src/heap/api.h", "\n")
        self.write("src/base/CMakeLists.txt", "tcm_layer(NAME base DEPENDS heap)\n")
        self.assertIn('src/base/bits.h: "heap/api.h" stands above base', self.check())

    def test_finds_a_folder_that_has_no_place(self):
        self.write("src/extra/x.h", "\n")
        self.assert_one_complaint(self.check(), "extra is not in src/LAYERS")

    def test_finds_an_include_without_its_folder(self):
        self.write("src/base/list.h", '#include "bits.h"\n')
        self.assert_one_complaint(self.check(), '"bits.h" is no file')

    def test_accepts_a_public_header(self):
        self.write("include/tcmalloc/api.h", "\n")
        self.write("src/base/list.h", '#include "tcmalloc/api.h"\n')
        self.assertEqual(self.check(), [])

    def test_finds_a_cycle_inside_a_folder(self):
        self.write("src/base/bits.h", '#include "base/list.h"\n')
        self.assert_one_complaint(self.check(), "cycle", "base/bits.h -> base/list.h -> base/bits.h")

    def test_finds_an_arrow_back_inside_a_folder(self):
        self.write("src/base/bits.cc", '#include "base/bits.h"\n#include "base/list.h"\n')
        self.assert_one_complaint(self.check(), "cycle", "base/bits -> base/list -> base/bits")

    def test_counts_a_header_and_its_inl_as_one(self):
        self.write("src/base/list_inl.h", "\n")
        self.write("src/base/list.cc", '#include "base/list.h"\n#include "base/list_inl.h"\n')
        self.assertEqual(self.check(), [])

    def test_finds_a_second_declaration_of_the_global(self):
        self.write("src/heap/heap.h", "extern constinit Heap heap;\n")
        self.assertEqual(self.check(), [])
        self.write("src/base/list.h", "class Heap;\nextern constinit Heap heap;\n")
        self.assert_one_complaint(self.check(), "src/base/list.h", "declares the global")

    def test_finds_an_include_that_cmake_does_not_know(self):
        self.write("src/heap/CMakeLists.txt", "tcm_layer(NAME heap SOURCES heap.cc)\n")
        complaints = self.check()
        self.assertIn("heap does not DEPEND on pages", complaints[0])
        self.assertIn("heap does not DEPEND on base", complaints[1])

    def test_finds_a_dependency_that_nothing_uses(self):
        self.write("src/heap/heap.cc", '#include "base/bits.h"\n')
        self.assert_one_complaint(self.check(), "heap: DEPENDS on pages")

    def test_keeps_the_parts_of_a_folder_apart(self):
        self.write("src/heap/classic/list.h", '#include "heap/huge/map.h"\n')
        self.write("src/heap/huge/map.h", "\n")
        self.write(
            "src/heap/CMakeLists.txt",
            "tcm_layer(NAME heap SOURCES heap.cc DEPENDS pages)\n"
            "tcm_layer(NAME heap/huge)\ntcm_layer(NAME heap/classic)\n",
        )
        self.assert_one_complaint(self.check(), "heap/classic does not DEPEND on heap/huge")

    def test_finds_a_test_folder_of_no_layer(self):
        self.write("tests/unit/nowhere/x_test.cc", "\n")
        self.assert_one_complaint(self.check(), "tests/unit/nowhere")


if __name__ == "__main__":
    unittest.main()
