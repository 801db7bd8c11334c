// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs all tests of a program, or those of the sources that arguments `--source=<path>` name.
// Several sources make one program, and each of them is a test of its own for ctest.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace tcmalloc::testing {
namespace {

using ::testing::TestInfo;
using ::testing::TestSuite;
using ::testing::UnitTest;

[[noreturn]] void Refuse(const std::string& message) {
  std::fprintf(stderr, "%s\n", message.c_str());
  std::exit(1);
}

// The end of a path decides, since compilers get paths from another folder.
bool LiesIn(const TestInfo& test, std::string_view source) {
  const std::string_view file = test.file();
  return file.ends_with(source) &&
         (file.size() == source.size() || file[file.size() - source.size() - 1] == '/');
}

template <typename Action>
void ForEachSuite(Action action) {
  const UnitTest& all = *UnitTest::GetInstance();
  for (int i = 0; i < all.total_test_suite_count(); ++i) action(*all.GetTestSuite(i));
}

template <typename Action>
void ForEachTest(const TestSuite& suite, Action action) {
  for (int i = 0; i < suite.total_test_count(); ++i) action(*suite.GetTestInfo(i));
}

// A source runs as a whole: a mistyped path, and a test that is in no source of tests and would
// never run, are failures.
void CheckSources(const std::vector<std::string_view>& sources) {
  std::vector<bool> found(sources.size());
  ForEachSuite([&](const TestSuite& suite) {
    ForEachTest(suite, [&](const TestInfo& test) {
      if (!std::string_view(test.file()).ends_with("_test.cc")) {
        Refuse(std::string(suite.name()) + "." + test.name() + " lies in " + test.file() +
               ", which no test of ctest runs");
      }
      for (size_t i = 0; i < sources.size(); ++i) {
        if (LiesIn(test, sources[i])) found[i] = true;
      }
    });
  });
  for (size_t i = 0; i < sources.size(); ++i) {
    if (!found[i]) Refuse(std::string(sources[i]) + " has no test in this program");
  }
}

// Patterns of GoogleTest, each with a colon before it, for all tests outside of the sources.
std::string PatternsOutside(const std::vector<std::string_view>& sources) {
  std::string patterns;
  ForEachSuite([&](const TestSuite& suite) {
    const std::string start = std::string(":") + suite.name() + ".";
    std::string some;
    int count = 0;
    ForEachTest(suite, [&](const TestInfo& test) {
      for (const std::string_view source : sources) {
        if (LiesIn(test, source)) return;
      }
      some += start + test.name();
      ++count;
    });
    patterns += count == suite.total_test_count() ? start + "*" : some;
  });
  return patterns;
}

// Takes the tests outside of the sources away from those that the filter has let through.
void NarrowFilter(const std::vector<std::string_view>& sources) {
  const std::string patterns = PatternsOutside(sources);
  if (patterns.empty()) return;
  std::string filter = GTEST_FLAG_GET(filter);
  const bool excludes = filter.find('-') != std::string::npos;
  GTEST_FLAG_SET(filter, filter + (excludes ? patterns : "-" + patterns.substr(1)));
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  constexpr std::string_view kSource = "--source=";
  std::vector<std::string_view> sources;
  for (int i = 1; i < argc; ++i) {
    const std::string_view argument = argv[i];
    if (!argument.starts_with(kSource)) {
      tcmalloc::testing::Refuse("unknown argument " + std::string(argument));
    }
    sources.push_back(argument.substr(kSource.size()));
  }
  if (!sources.empty()) {
    tcmalloc::testing::CheckSources(sources);
    tcmalloc::testing::NarrowFilter(sources);
  }
  return RUN_ALL_TESTS();
}
