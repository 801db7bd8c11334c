# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_orders

PAIR = """
class Flag {
 public:
  // Acquire pairs with the release in Set.
  bool get() const { return word_.load(std::memory_order_acquire); }

 private:
  std::atomic<bool> word_{false};
};

void Flag::Set() {
  // Release pairs with the acquire in get and publishes what was written before.
  word_.store(true, std::memory_order_release);
}
"""


class CheckOrdersTest(TreeTest):
    def check(self, source, path="src/base/flag.h"):
        self.write(path, source)
        self.write("docs/locking.md", "`src/base/flag.h:Flag`\n")
        return check_orders.check(self.root)

    def without(self, text):
        self.assertIn(text, PAIR)
        return PAIR.replace(text, "")

    def test_accepts_a_pair(self):
        self.assertEqual(self.check(PAIR), [])

    def test_finds_an_order_without_a_comment(self):
        lacking = self.without("  // Acquire pairs with the release in Set.\n")
        self.assert_one_complaint(self.check(lacking), "flag.h:4", "without a comment")

    def test_a_comment_has_to_name_the_other_side(self):
        lacking = self.without("pairs with the release in Set")
        self.assert_one_complaint(self.check(lacking), "without a comment")

    def test_finds_a_partner_that_does_not_exist(self):
        wrong = PAIR.replace("in Set.", "in Put.")
        self.assert_one_complaint(self.check(wrong), "Put", "does not exist")

    def test_finds_a_partner_that_is_gone_after_others(self):
        wrong = PAIR.replace("in Set.", "in Set and Other::Put.")
        self.assert_one_complaint(self.check(wrong), "Other::Put")

    def test_finds_a_partner_without_an_order(self):
        relaxed = PAIR.replace("memory_order_release", "memory_order_relaxed")
        self.assert_one_complaint(self.check(relaxed), "Set", "no memory order")

    def test_an_acquire_pairs_with_no_acquire(self):
        both = PAIR.replace("memory_order_release", "memory_order_acquire").replace("store", "load")
        complaints = self.check(both)
        self.assertEqual(len(complaints), 2, complaints)
        self.assertIn("only orders of the same kind", complaints[0])

    def test_an_order_that_is_not_named_is_the_strongest(self):
        for use in ("word_.load()", "word_->store(true)", "word_.fetch_add(1)", "++word_",
                    "word_ = true", "word_ |= true"):
            source = f"std::atomic<bool> word_;\nvoid F() {{\n  {use};\n}}\n"
            self.assert_one_complaint(self.check(source), "flag.h:3", "without a comment")

    def test_knows_the_members_of_the_header(self):
        self.write("src/base/flag.h", "class A {\n  std::atomic<int> sum_{0};\n};\n")
        self.assert_one_complaint(self.check("void F() { ++sum_; }\n", "src/base/flag.cc"), "flag.cc")

    def test_relaxed_needs_no_partner(self):
        source = "std::atomic<int> word_;\nvoid F() { word_.load(std::memory_order_relaxed); }\n"
        self.assertEqual(self.check(source), [])

    def test_a_comment_stands_above_its_statement(self):
        source = PAIR.replace("  word_.store(true,", "  if (a &&\n      word_.store(true,")
        self.assertEqual(self.check(source), [])
        above = PAIR.replace("  word_.store(true", "  Log();\n  word_.store(true")
        self.assert_one_complaint(self.check(above), "without a comment")

    def test_a_comment_may_end_the_line(self):
        source = PAIR.replace(
            "  // Release pairs with the acquire in get and publishes what was written before.\n", ""
        ).replace("order_release);", "order_release);  // pairs with Flag::get")
        self.assertEqual(self.check(source), [])

    def test_a_fence_pairs_with_any_function(self):
        source = "void Open() {\n  // Pairs with {}.\n  std::atomic_signal_fence(seq_cst);\n}\n"
        self.assertEqual(self.check(source.replace("{}", "Open")), [])
        self.assert_one_complaint(self.check(source.replace("{}", "Close")), "Close", "does not exist")

    def test_finds_fences_of_all_threads(self):
        for fence in ("FenceThreads()", "if (!fence_(cpu_)) return"):
            self.assert_one_complaint(self.check(f"void F() {{\n  {fence};\n}}\n"), "flag.h:2")

    def test_a_fence_pairs_with_assembly_that_exists(self):
        source = "void F() {\n  // Pairs with the sections in s.S.\n  fence_(cpu_);\n}\n"
        self.assert_one_complaint(self.check(source), "s.S")
        self.write("src/base/s.S", "")
        self.assertEqual(self.check(source), [])

    def test_the_own_class_comes_first(self):
        other = PAIR.replace("Flag", "Other").replace("order_release", "order_relaxed")
        self.assert_one_complaint(self.check(PAIR + other), "flag.h:19", "Set", "no memory order")

    def test_the_page_of_locks_names_each_file(self):
        self.assertEqual(self.check(PAIR, "src/base/flag.cc"), [])
        self.assert_one_complaint(self.check(PAIR, "src/base/more.cc"), "more.cc", "docs/locking.md")

    def test_looks_at_nothing_but_the_library(self):
        self.assertEqual(self.check("++word_; a.load();\n", "tests/unit/base/flag_test.cc"), [])


if __name__ == "__main__":
    unittest.main()
