# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_sources

LICENCE = f"// {check_sources.LICENCE}\n"


def header(guard):
    return f"{LICENCE}#ifndef {guard}\n#define {guard}\n\n#endif  // {guard}\n"


class CheckSourcesTest(TreeTest):
    def check(self):
        return check_sources.check(self.root)

    def test_accepts_sound_sources(self):
        self.write("src/base/bits.h", header("TCMALLOC_BASE_BITS_H_"))
        self.write("tests/fakes/clock.h", header("TCMALLOC_TESTS_FAKES_CLOCK_H_"))
        self.write("scripts/x.sh", f"#!/bin/sh\n# {check_sources.LICENCE}\n")
        self.write("docs/page.md", "no source\n")
        self.assertEqual(self.check(), [])

    def test_finds_a_missing_licence(self):
        self.write("src/base/bits.cc", "int x;\n")
        self.assert_one_complaint(self.check(), "src/base/bits.cc", "licence")

    def test_finds_a_licence_that_is_not_at_the_top(self):
        self.write("src/base/bits.cc", "int x;\n" + LICENCE)
        self.assert_one_complaint(self.check(), "licence")

    def test_finds_a_wrong_guard(self):
        self.write("src/base/bits.h", header("TCMALLOC_BITS_H_"))
        self.assert_one_complaint(self.check(), "TCMALLOC_BASE_BITS_H_")

    def test_finds_comments_that_hide_their_subject(self):
        self.write("src/base/a.cc", LICENCE + "// Returns 1.\n// What the caller wants.\n")
        self.assert_one_complaint(self.check(), "src/base/a.cc:3", "What")
        self.write("src/base/a.cc", LICENCE + "/*\n * Likewise for 2.\n */\n")
        self.assert_one_complaint(self.check(), "src/base/a.cc:3", "Likewise")

    def test_leaves_other_comments_alone(self):
        self.write("src/base/a.cc", LICENCE + "// Whatever works.\nint x;  // what is left\n")
        self.write("tests/b.cc", LICENCE + "// What the test does.\n")
        self.assertEqual(self.check(), [])


if __name__ == "__main__":
    unittest.main()
