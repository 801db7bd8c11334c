// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/load.h"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <variant>

#include "base/attributes.h"
#include "base/message.h"
#include "options/option_table.h"
#include "options/parse.h"

// Null unless this library, or another one of the process, has these tools.
extern "C" [[gnu::weak]] int ProfilerStart(const char* path);
extern "C" [[gnu::weak]] void HeapProfilerStart(const char* prefix);
extern "C" [[gnu::weak]] bool heap_leak_checker_bcad_variable;

namespace tcmalloc {
namespace {

constexpr std::string_view kPrefix = "TCMALLOC_";
constexpr size_t kLargestTypo = 2;
constexpr std::string_view kSuffixes = ", or with K, M, G or T";

// Copies of paths, because programs that change their title overwrite the environment with which
// they were started. They are not in Options, which has nonzero values, so that they cost memory
// only when used.
constinit char path_texts[kPathOptions][kPathCapacity] = {};

void AppendNumber(Message& message, uint64_t number) { message << number; }
void AppendNumber(Message& message, int64_t number) { message << number; }

TCMALLOC_COLD void AppendNumber(Message& message, double number) {
  const auto whole = static_cast<int64_t>(number);
  if (number == static_cast<double>(whole)) {
    message << whole;
  } else {
    message.AppendFixed(number);
  }
}

// Sets one option from the text of its variable.
class Loader {
 public:
  Loader(const OptionRow& row, std::string_view value, Options* options)
      : row_(row), value_(value), options_(options) {}

  void Load() {
    std::visit([this](const auto& type) { LoadAs(type); }, row_.type);
  }

 private:
  void LoadAs(const CountType& type) {
    std::optional<uint64_t> parsed = ParseCount(value_);
    if (!type.power_of_two) return LoadNumber(type, parsed);
    const bool in_range = parsed.has_value() && *parsed >= type.min && *parsed <= type.max;
    if (in_range && !std::has_single_bit(*parsed)) parsed.reset();
    LoadNumber(type, parsed, "", "a power of two");
  }
  void LoadAs(const RealType& type) { LoadNumber(type, ParseReal(value_)); }
  void LoadAs(const SizeType& type) {
    LoadNumber(type, ParseSize(value_, static_cast<uint64_t>(type.unit)), kSuffixes);
  }
  void LoadAs(const SignedSizeType& type) { LoadNumber(type, ParseSignedSize(value_), kSuffixes); }

  void LoadAs(const SwitchType& type) {
    bool& field = options_->*type.field;
    if (const std::optional<bool> parsed = ParseSwitch(value_)) {
      field = *parsed;
      return;
    }
    Message message = Complaint();
    message << "true or false; using " << field;
    Warn(message);
  }

  template <typename Type, typename Number>
  void LoadNumber(const Type& type, std::optional<Number> parsed, std::string_view hint = "",
                  std::string_view kind = "a number") {
    if (value_.empty()) return;
    Number& field = options_->*type.field;
    if (parsed.has_value()) field = std::clamp(*parsed, type.min, type.max);
    if (parsed == field) return;
    Message message = Complaint();
    message << kind << " from ";
    AppendNumber(message, type.min);
    message << " to ";
    AppendNumber(message, type.max);
    AppendUnit(message);
    message << hint << "; using ";
    AppendNumber(message, field);
    if (field <= 0 && !row_.zero.empty()) {
      message << " (" << row_.zero << ")";
    } else {
      AppendUnit(message);
    }
    Warn(message);
  }

  template <typename Enumeration>
  void LoadAs(const WordType<Enumeration>& type) {
    if (value_.empty()) return;
    Enumeration& field = options_->*type.field;
    const auto word = std::ranges::find(type.words, value_);
    if (word == type.words.end()) return WarnOfWord(type.words, static_cast<size_t>(field));
    field = static_cast<Enumeration>(word - type.words.begin());
  }

  TCMALLOC_COLD void WarnOfWord(std::span<const std::string_view> words, size_t used) const {
    Message message = Complaint();
    AppendWords(words, "or", message);
    message << "; using " << words[used];
    Warn(message);
  }

  // A list with an unknown word is ignored as a whole.
  void LoadAs(const SetType& type) {
    if (value_.empty()) return;
    const std::optional<uint64_t> set = ParseSet(value_, type.words);
    uint64_t& field = options_->*type.field;
    if (!set.has_value()) return WarnOfSet(type.words, field);
    field = *set;
  }

  TCMALLOC_COLD void WarnOfSet(std::span<const std::string_view> words, uint64_t used) const {
    Message message = Complaint();
    message << "a list of ";
    AppendWords(words, "and", message);
    message << ", separated by commas; using";
    for (size_t i = 0; i < words.size(); ++i) {
      if ((used >> i & 1) != 0) message << " " << words[i];
    }
    Warn(message);
  }

  void LoadAs(const PathType& type) {
    if (value_.size() < kPathCapacity) {
      char* text = path_texts[type.index];
      std::memcpy(text, value_.data(), value_.size());
      text[value_.size()] = '\0';
      (options_->*type.field).text = text;
      return;
    }
    Message message = Complaint();
    message << "a path of less than " << uint64_t{kPathCapacity} << " bytes; using none";
    Warn(message);
  }

  static void AppendWords(std::span<const std::string_view> words, std::string_view last,
                          Message& message) {
    for (size_t i = 0; i < words.size(); ++i) {
      if (i > 0 && i + 1 < words.size()) message << ", ";
      if (i > 0 && i + 1 == words.size()) message << " " << last << " ";
      message << words[i];
    }
  }

  void AppendUnit(Message& message) const {
    if (!row_.unit.empty()) message << " " << row_.unit;
  }

  Message Complaint() const {
    Message message;
    message << row_.variable << "=";
    message.AppendQuoted(value_) << ": expected ";
    return message;
  }

  const OptionRow& row_;
  std::string_view value_;
  Options* options_;
};

// Returns the least number of letters to insert, delete or replace to turn `a` into `b`. Requires
// both to have at most kLongestVariable letters.
size_t EditDistance(std::string_view a, std::string_view b) {
  // distances[j] is the distance from the part of `a` seen so far to the first j letters of `b`.
  size_t distances[kLongestVariable + 1];
  for (size_t j = 0; j <= b.size(); ++j) distances[j] = j;
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = distances[0]++;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = distances[j + 1];
      distances[j + 1] = std::min({replaced, diagonal + 1, distances[j] + 1});
    }
  }
  return distances[b.size()];
}

bool HasLeakChecker() { return &heap_leak_checker_bcad_variable != nullptr; }

// Reports a variable that starts a tool which this library lacks. Returns false if it is another
// variable.
bool WarnIfToolIsMissing(const EnvironmentVariable& variable) {
  for (const MissingTool& missing : MissingTools()) {
    if (variable.name != missing.variable) continue;
    const bool elsewhere = (missing.variable == "CPUPROFILE" && ProfilerStart != nullptr) ||
                           (missing.variable == "HEAPPROFILE" && HeapProfilerStart != nullptr) ||
                           (missing.variable == "HEAPCHECK" && HasLeakChecker());
    if (variable.value.empty() || elsewhere) return true;
    Message message;
    message << missing.variable << " is set, but this library has no " << missing.tool
            << "; running without it";
    Warn(message);
    return true;
  }
  return false;
}

// Reports options that leave no source of memory for the heap.
void WarnIfNoSourceIsLeft(const Options& options) {
  if (!options.skip_mmap || !options.skip_sbrk) return;
  if (options.devmem_start != 0 || !options.memfs_malloc_path.empty()) return;
  Warn(Message() << "TCMALLOC_SKIP_MMAP and TCMALLOC_SKIP_SBRK are both set: there is no memory "
                    "left to take, and every allocation fails");
}

void WarnIfTypo(std::string_view name) {
  const std::string_view nearest = NearestVariable(name);
  if (nearest.empty()) return;
  Message message;
  message << "unknown variable ";
  message.AppendQuoted(name) << "; did you mean " << nearest << "?";
  Warn(message);
}

}  // namespace

std::string_view NearestVariable(std::string_view name) {
  if (name.size() < kPrefix.size() || name.size() > kLongestVariable) return {};
  if (std::memcmp(name.data(), kPrefix.data(), kPrefix.size()) != 0) return {};
  for (const IgnoredVariable& ignored : IgnoredVariables()) {
    if (name == ignored.variable) return {};
  }
  std::string_view nearest;
  size_t nearest_distance = kLargestTypo + 1;
  for (const OptionRow& row : OptionTable()) {
    const size_t distance = EditDistance(name, row.variable);
    if (distance == 0) return {};
    if (distance >= nearest_distance) continue;
    nearest = row.variable;
    nearest_distance = distance;
  }
  return nearest;
}

void LoadOptions(Environment& environment, Options* options) {
  const std::span<const OptionRow> table = OptionTable();
  bool seen[kMostOptions] = {};
  EnvironmentVariable variable;
  while (environment.Next(&variable)) {
    if (!MayBeOption(variable.name)) continue;
    const auto row = std::find_if(table.begin(), table.end(), [&](const OptionRow& candidate) {
      return candidate.variable == variable.name;
    });
    const bool tool = WarnIfToolIsMissing(variable);
    if (row == table.end()) {
      if (!tool) WarnIfTypo(variable.name);
      continue;
    }
    bool& seen_before = seen[row - table.begin()];
    if (!seen_before) Loader(*row, variable.value, options).Load();
    seen_before = true;
  }
  WarnIfNoSourceIsLeft(*options);
}

}  // namespace tcmalloc
