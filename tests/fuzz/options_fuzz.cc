// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Environments of any variables with any values: what each option becomes, and what is reported.

#include <sanitizer/common_interface_defs.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "options/load.h"
#include "options/option_table.h"
#include "options/parse.h"
#include "system/environment.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

// While it lives, what is written to stderr goes to memory; not what a sanitizer reports.
class CapturedStderr {
 public:
  CapturedStderr() {
    TCMALLOC_CHECK_LE(0, Saved());
    TCMALLOC_CHECK_EQ(::ftruncate(Memory(), 0), 0);
    TCMALLOC_CHECK_EQ(::lseek(Memory(), 0, SEEK_SET), 0);
    ::dup2(Memory(), STDERR_FILENO);
  }
  ~CapturedStderr() { ::dup2(Saved(), STDERR_FILENO); }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string text() const {
    std::string text(static_cast<size_t>(::lseek(Memory(), 0, SEEK_END)), '\0');
    TCMALLOC_CHECK(::pread(Memory(), text.data(), text.size(), 0) ==
                   static_cast<ssize_t>(text.size()));
    return text;
  }

 private:
  static int Memory() {
    static const int memory = ::memfd_create("stderr", MFD_CLOEXEC);
    return memory;
  }
  static int Saved() {
    static const int saved = [] {
      const int copy = ::dup(STDERR_FILENO);
      __sanitizer_set_report_fd(reinterpret_cast<void*>(intptr_t{copy}));
      return copy;
    }();
    return saved;
  }
};

// The first byte of an entry says what it is: a value of an option, one that is padded to about
// the length of the longest path, or any text.
std::vector<std::string> TakeVariables(FuzzInput& input) {
  const auto table = OptionTable();
  constexpr size_t kAboutLongestPath = kPathCapacity - 8;
  std::vector<std::string> variables;
  while (!input.empty()) {
    const std::string_view entry = input.TakeUntil('\0');
    const size_t kind = entry.empty() ? SIZE_MAX : static_cast<unsigned char>(entry[0]) - 1u;
    if (kind >= 2 * table.size()) {
      variables.emplace_back(entry);
      continue;
    }
    std::string value(entry.substr(1));
    if (kind >= table.size()) {
      value.resize(std::max(value.size(), kAboutLongestPath + value.size() % 16), 'x');
    }
    variables.push_back(std::string(table[kind % table.size()].variable) + "=" + value);
  }
  return variables;
}

// CheckValue compares an option with the text of its variable. See parse_fuzz.cc for the parsers.

void CheckValue(const SwitchType& type, const Options& options, std::string_view text) {
  TCMALLOC_CHECK_EQ(options.*type.field, ParseSwitch(text).value_or(Options().*type.field));
}

void CheckValue(const CountType& type, const Options& options, std::string_view text) {
  const uint64_t unset = Options().*type.field;
  const uint64_t value = std::clamp(ParseCount(text).value_or(unset), type.min, type.max);
  const bool permitted = !type.power_of_two || std::has_single_bit(value);
  TCMALLOC_CHECK_EQ(options.*type.field, permitted ? value : unset);
}

void CheckValue(const SizeType& type, const Options& options, std::string_view text) {
  const auto unit = static_cast<uint64_t>(type.unit);
  const uint64_t value = ParseSize(text, unit).value_or(Options().*type.field);
  TCMALLOC_CHECK_EQ(options.*type.field, std::clamp(value, type.min, type.max));
}

void CheckValue(const SignedSizeType& type, const Options& options, std::string_view text) {
  const int64_t value = ParseSignedSize(text).value_or(Options().*type.field);
  TCMALLOC_CHECK_EQ(options.*type.field, std::clamp(value, type.min, type.max));
}

void CheckValue(const RealType& type, const Options& options, std::string_view text) {
  const double value = ParseReal(text).value_or(Options().*type.field);
  TCMALLOC_CHECK(options.*type.field == std::clamp(value, type.min, type.max));
}

template <typename Enumeration>
void CheckValue(const WordType<Enumeration>& type, const Options& options, std::string_view text) {
  Enumeration value = Options().*type.field;
  for (size_t i = 0; i < type.words.size(); ++i) {
    if (text == type.words[i]) value = static_cast<Enumeration>(i);
  }
  TCMALLOC_CHECK(options.*type.field == value);
}

void CheckValue(const SetType& type, const Options& options, std::string_view text) {
  const uint64_t unset = Options().*type.field;
  const uint64_t value = text.empty() ? unset : ParseSet(text, type.words).value_or(unset);
  TCMALLOC_CHECK_EQ(options.*type.field, value);
}

void CheckValue(const PathType& type, const Options& options, std::string_view text) {
  const bool fits = text.size() < kPathCapacity;
  TCMALLOC_CHECK_EQ(std::string_view((options.*type.field).text), fits ? text : "");
}

// The first variable of its name counts.
void CheckOption(const OptionRow& row, const Options& options,
                 const std::vector<std::string>& variables) {
  const std::string beginning = std::string(row.variable) + "=";
  for (const std::string& variable : variables) {
    if (!variable.starts_with(beginning)) continue;
    const std::string_view text = std::string_view(variable).substr(beginning.size());
    return std::visit([&](const auto& type) { CheckValue(type, options, text); }, row.type);
  }
}

// One short printable line for each report, of which a variable may make two: its value is wrong,
// and the library lacks what it asks for.
void CheckReports(std::string_view reports, size_t variables) {
  constexpr size_t kLongestReport = 250;
  for (size_t left = 2 * variables; !reports.empty(); --left) {
    TCMALLOC_CHECK(left > 0);
    const std::string_view line = reports.substr(0, reports.find('\n'));
    TCMALLOC_CHECK(line.size() < reports.size());
    TCMALLOC_CHECK(line.starts_with("tcmalloc: "));
    TCMALLOC_CHECK_LE(line.size(), kLongestReport);
    TCMALLOC_CHECK(
        std::all_of(line.begin(), line.end(), [](char c) { return ' ' <= c && c <= '~'; }));
    reports.remove_prefix(line.size() + 1);
  }
}

}  // namespace

TCM_FUZZ_TARGET(options_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const std::vector<std::string> variables = TakeVariables(input);
  std::vector<const char*> block;
  for (const std::string& variable : variables) block.push_back(variable.c_str());
  block.push_back(nullptr);

  Options options;
  std::string reports;
  {
    const CapturedStderr captured;
    Environment environment(block.data());
    LoadOptions(environment, &options);
    reports = captured.text();
  }
  for (const OptionRow& row : OptionTable()) CheckOption(row, options, variables);
  CheckReports(reports, variables.size());
  return 0;
}
