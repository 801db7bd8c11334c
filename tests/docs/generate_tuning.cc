// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes docs/tuning.md from the table of options; generated_page.h tells the arguments.

#include <sstream>
#include <string>
#include <string_view>
#include <variant>

#include "docs/generated_page.h"
#include "options/option_table.h"

namespace tcmalloc {
namespace {

constexpr std::string_view kIntroduction = R"(# Tuning

<!-- Generated from src/options/option_table.cc by tests/docs/generate_tuning.cc: the test
docs_tuning fails when the two differ, and prints the command that writes this page anew. -->

Environment variables that the allocator reads once, when a process first allocates.

- A process that runs with more rights than its caller has (set-user-ID, file capabilities) reads
  none of them.
- A switch is on if its value is empty or begins with `t`, `T`, `y`, `Y` or `1`, and off if it
  begins with `f`, `F`, `n`, `N` or `0`.
- A size is a whole number of the unit that the table names, or a whole number with the suffix `K`,
  `M`, `G` or `T`, also written `KB` or `KiB`: powers of 1024 bytes. `TCMALLOC_HEAP_LIMIT_MB=1G` is
  1024 MiB. A size between two units is rounded up.
- A number outside its range becomes the nearest one inside. A value that cannot be read is ignored.
  Either is reported on stderr, once per process, in a line that names the variable, its value, and
  the value that is used instead.
- An empty number, word or path counts as not set.

Further mistakes are reported in a line each: a name that is nearly one of these; `HEAPPROFILE`,
`HEAPCHECK` or `CPUPROFILE`, which start tools that this library has not (the last one is not reported
where another library brings a CPU profiler); both sources of memory switched off; a file for the report
at exit that cannot be opened.

| variable | value | default | meaning |
|---|---|---|---|
)";

// Describes one option as two cells: which values it may have, and its default.
class Cells {
 public:
  explicit Cells(std::string_view unit) : unit_(unit.empty() ? "" : " " + std::string(unit)) {}

  std::string operator()(const SwitchType& type) const {
    return Join("switch", defaults_.*type.field ? "on" : "off");
  }
  std::string operator()(const CountType& type) const { return Number(type, "whole number, "); }
  std::string operator()(const SizeType& type) const { return Number(type, "size, "); }
  std::string operator()(const SignedSizeType& type) const { return Number(type, "size, "); }
  std::string operator()(const RealType& type) const { return Number(type, "number, "); }
  template <typename Enumeration>
  std::string operator()(const WordType<Enumeration>& type) const {
    std::string words;
    for (const std::string_view word : type.words) {
      words += (words.empty() ? "`" : ", `") + std::string(word) + "`";
    }
    return Join(words, std::string(type.words[static_cast<size_t>(defaults_.*type.field)]));
  }
  std::string operator()(const SetType& type) const {
    std::string words;
    std::string initial;
    for (size_t i = 0; i < type.words.size(); ++i) {
      words += (i == 0 ? "list of `" : ", `") + std::string(type.words[i]) + "`";
      if ((defaults_.*type.field >> i & 1) != 0) initial += type.words[i];
    }
    return Join(words, initial);
  }
  std::string operator()(const PathType&) const { return Join("path", "none"); }

 private:
  template <typename Type>
  std::string Number(const Type& type, const std::string& kind) const {
    std::ostringstream value;
    value << kind << type.min << " to " << type.max << unit_;
    std::ostringstream initial;
    initial << defaults_.*type.field;
    return Join(value.str(), initial.str());
  }

  static std::string Join(const std::string& value, const std::string& initial) {
    return value + " | " + initial;
  }

  std::string unit_;
  Options defaults_;
};

constexpr std::string_view kIgnored = R"(
## Without effect

Variables of gperftools that may be set and change nothing:

| variable | why |
|---|---|
)";

constexpr std::string_view kWhileItRuns = R"(
## While a program runs

`MallocExtension::SetNumericProperty` changes the total and the least of thread caches, the heap limit and
aggressive decommit ([properties](malloc-extension.md#numeric-properties)); `SetMemoryReleaseRate` the release rate.
)";

std::string Page() {
  std::ostringstream page;
  page << kIntroduction;
  for (const OptionRow& row : OptionTable()) {
    page << "| `" << row.variable << "` | " << std::visit(Cells(row.unit), row.type) << " | "
         << row.meaning << " |\n";
  }
  page << kIgnored;
  for (const IgnoredVariable& ignored : IgnoredVariables()) {
    page << "| `" << ignored.variable << "` | " << ignored.reason << " |\n";
  }
  page << kWhileItRuns;
  return page.str();
}

}  // namespace
}  // namespace tcmalloc

int main(int argc, char** argv) {
  return tcmalloc::testing::KeepPage(argc, argv, tcmalloc::Page());
}
