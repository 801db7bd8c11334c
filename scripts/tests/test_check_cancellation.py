# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_cancellation


class CheckCancellationTest(TreeTest):
    def check(self, source, path="src/base/output.cc"):
        self.write(path, source)
        return check_cancellation.check(self.root)

    def test_finds_calls_however_they_are_written(self):
        for call in ("::write(2, p, n);", "write (2, p, n);", "if (!write(2, p, n)) x();"):
            self.assert_one_complaint(self.check(f"\n{call}\n"), "output.cc:2", "write")

    def test_finds_what_only_the_standard_calls_possible(self):
        self.assert_one_complaint(self.check("std::printf(text);\n"), "printf")

    def test_finds_a_pointer_to_a_function(self):
        self.assert_one_complaint(self.check("auto sleep = ::nanosleep;\n"), "nanosleep")

    def test_looks_at_headers(self):
        self.assert_one_complaint(self.check("pause();\n", "src/base/pause.h"), "pause")

    def test_accepts_direct_system_calls_and_names_of_others(self):
        source = """
        ::syscall(SYS_write, fd, text, size);
        system_calls.open(path, flags, 0);
        real->read(fd, buffer, size);
        Table::close(fd);
        int open = 0;
        """
        self.assertEqual(self.check(source), [])

    def test_accepts_comments_and_strings(self):
        self.assertEqual(self.check('// write(2)\n/* read(0)\n read(1) */ x = "open(a)";\n'), [])

    def test_looks_at_nothing_but_the_library(self):
        self.assertEqual(self.check("write(2, p, n);\n", "tests/unit/base/output_test.cc"), [])

    def test_a_permission_holds_for_one_file_and_must_be_needed(self):
        path = "src/upkeep/background_thread.cc"
        self.assertEqual(self.check("::pthread_join(thread, nullptr);\n", path), [])
        self.assert_one_complaint(self.check("\n", path), "pthread_join", "not called")


if __name__ == "__main__":
    unittest.main()
