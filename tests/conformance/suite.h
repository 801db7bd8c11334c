// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_SUITE_H_
#define TCMALLOC_TESTS_CONFORMANCE_SUITE_H_

#include <cstddef>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

namespace tcmalloc::testing {

// The findings of one case. A failed check prints the case, what was compared, and both values; a
// case goes on after it, but prints at most a few.
class Case {
 public:
  explicit Case(std::string_view name) : name_(name) {}

  template <typename Expected, typename Actual>
  bool Equal(std::string_view what, const Expected& expected, const Actual& actual) {
    if (expected == actual) return true;
    Report(what, Print(expected), Print(actual));
    return false;
  }

  bool True(std::string_view what, bool actual) { return Equal(what, true, actual); }

  // For a value that lies outside what is allowed.
  template <typename Actual>
  bool Check(bool ok, std::string_view what, std::string_view expected, const Actual& actual) {
    if (!ok) Report(what, std::string(expected), Print(actual));
    return ok;
  }

  // The rest of the case cannot be judged here.
  void Skip(std::string_view reason);

  bool failed() const { return failures_ > 0; }

 private:
  template <typename Value>
  static std::string Print(const Value& value) {
    std::ostringstream out;
    out << std::boolalpha << value;
    return out.str();
  }

  void Report(std::string_view what, const std::string& expected, const std::string& actual);

  std::string_view name_;
  int failures_ = 0;
};

// A list of named cases with a command line:
//   [--library NAME] [--filter TEXT] [--list]
// NAME must occur in the path of the object that defines malloc, so that the cases never judge
// another allocator by mistake. A signal or a hang is reported with the case that it hit.
class Suite {
 public:
  void Add(std::string name, std::function<void(Case&)> body);

  // Exit status: 0, or 1 where a case failed or there are fewer than `least` cases.
  int Main(int argc, char** argv, std::size_t least) const;

 private:
  struct Entry {
    std::string name;
    std::function<void(Case&)> body;
  };
  std::vector<Entry> entries_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_SUITE_H_
