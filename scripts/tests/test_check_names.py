# Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

import unittest

from tree import TreeTest

import check_names

# Joined here, so that the check finds nothing in this file.
FORBIDDEN = [
    "/wo" + "rk/main/x.cc",
    "/tmp/" + "briefs/x.md",
    "../shared/" + "spec/x.md",
    "https://pypi" + ".org/simple",
    "deb.debian" + ".org",
    "static.crates" + ".io",
    "proxy.golang" + ".org",
    "farm" + "-bench",
    "// TO" + "DO: later",
    "FIX" + "ME",
]
ALLOWED = ["framework/x", "build/work/x", "a shared/specific note", "todo lists", "pypi"]


class CheckNamesTest(TreeTest):
    def test_finds_each_forbidden_name(self):
        for name in FORBIDDEN:
            with self.subTest(name):
                self.write("docs/page.md", f"first line\nsee {name} here\n")
                self.assert_one_complaint(check_names.check(self.root), "docs/page.md:2:")

    def test_accepts_what_only_looks_alike(self):
        self.write("docs/page.md", "\n".join(ALLOWED))
        self.assertEqual(check_names.check(self.root), [])

    def test_finds_types_of_one_name(self):
        self.write("src/a/one.h", "namespace tcmalloc {\nclass Twice final : public Base {\n};\n}\n")
        self.write("src/b/two.h", "namespace tcmalloc {\n\nstruct alignas(64) Twice {\n};\n}\n")
        self.assert_one_complaint(check_names.check(self.root), "src/b/two.h:3:", "Twice", "src/a/one.h:2")

    def test_accepts_types_that_are_a_files_own(self):
        own = "namespace tcmalloc {\nnamespace {\nclass Twice {\n};\n}  // namespace\n}\n"
        self.write("src/a/one.cc", own)
        self.write("src/b/two.cc", own)
        self.write("src/b/three.h", "class Twice;\nclass Other {\n  struct Twice {\n  };\n};\n")
        self.assertEqual(check_names.check(self.root), [])

    def test_reads_past_binary_and_lock_files(self):
        (self.root / "image.png").write_bytes(b"\xff\xfe TO" + b"DO")
        self.write("Cargo.lock", "registry+https://github.com/rust-lang/crates" + ".io-index")
        self.assertEqual(check_names.check(self.root), [])


if __name__ == "__main__":
    unittest.main()
