# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_docs


class CheckDocsTest(TreeTest):
    def setUp(self):
        super().setUp()
        self.write("src/LAYERS", "base\n")
        self.write("src/base/list.h", "class IntrusiveList { void Push(); };\n")
        self.write("docs/other.md", "# The other page\n")

    def check(self, text):
        self.write("docs/page.md", text)
        return check_docs.check(self.root)

    def test_accepts_what_exists(self):
        text = """
            [a page](other.md), [a heading](other.md#the-other-page), [here](#below)
            [a header](../src/base/list.h) [elsewhere](https://example.org/x/y)
            `src/base/list.h` `base/list.h` `src/base/` `src/base/list.h:IntrusiveList`
            `base/list.h:IntrusiveList::Push` `name/of/something/else` `a + b/c`
        """
        text = text.replace("            ", "")
        self.assertEqual(self.check(text + "\n# Below\n"), [])

    def test_finds_a_dead_link(self):
        self.assert_one_complaint(self.check("[x](gone.md)"), "docs/page.md", "gone.md")

    def test_finds_a_dead_heading(self):
        self.assert_one_complaint(self.check("[x](other.md#gone)"), "no such heading")
        self.assert_one_complaint(self.check("[x](#gone)"), "no such heading")

    def test_finds_a_missing_path(self):
        self.assert_one_complaint(self.check("`src/base/gone.h`"), "src/base/gone.h does not exist")
        self.assert_one_complaint(self.check("`base/gone.h`"), "src/base/gone.h does not exist")

    def test_finds_a_missing_symbol(self):
        self.assert_one_complaint(self.check("`src/base/list.h:Intrusive`"), "no Intrusive in")
        self.assert_one_complaint(self.check("`base/list.h:IntrusiveList::Pop`"), "no IntrusiveList::Pop")

    def test_does_not_read_examples(self):
        self.assertEqual(self.check("```\n`src/base/gone.h` [x](gone.md)\n```\n"), [])

    def test_reads_the_readme(self):
        self.write("README.md", "`docs/gone.md`")
        self.assert_one_complaint(self.check(""), "README.md", "docs/gone.md")


if __name__ == "__main__":
    unittest.main()
