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


class LocksTest(TreeTest):
    ROWS = ("| `kLow` | `src/base/low.h:Low` |", "| `kHigh` | `src/base/high.h:High` |")

    def check(self, *rows):
        self.write("src/LAYERS", "base\n")
        ranks = "enum class LockRank : uint8_t {\n  kLow,  // kFirst\n  kHigh,\n};\n"
        self.write("src/base/lock_rank.h", ranks)
        self.write("src/base/low.h", "class Low { SpinLock lock_{LockRank::kLow}; };\n")
        self.write("src/base/high.h", "class High { BiasedLock lock_{LockRank::kHigh}; };\n")
        self.write("docs/locking.md", "\n".join(rows) + "\n")
        return check_docs.check(self.root)

    def test_accepts_a_row_for_each_rank(self):
        self.assertEqual(self.check(*self.ROWS), [])

    def test_finds_a_rank_without_a_row(self):
        complaints = self.check(self.ROWS[0])
        self.assertEqual(len(complaints), 2, complaints)
        self.assertIn("no row for kHigh", complaints[0])
        self.assertIn("src/base/high.h", complaints[1])

    def test_finds_a_row_without_a_rank(self):
        complaints = self.check(*self.ROWS, "| `kOther` | `src/base/low.h:Low` |")
        self.assertIn("docs/locking.md: kOther is no LockRank", complaints)

    def test_finds_rows_in_another_order(self):
        self.assert_one_complaint(self.check(*reversed(self.ROWS)), "order")

    def test_finds_a_lock_that_is_not_named(self):
        self.write("src/base/more.h", "class More { SpinLock lock_{LockRank::kLow}; };\n")
        self.assert_one_complaint(self.check(*self.ROWS), "kLow", "src/base/more.h")

    def test_finds_a_row_whose_lock_is_gone(self):
        more = "| `kLow` | `src/base/high.h:High` |"
        self.assert_one_complaint(self.check(self.ROWS[0], more, self.ROWS[1]), "row of kLow")


if __name__ == "__main__":
    unittest.main()
