// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The one list of all options.

#ifndef TCMALLOC_OPTIONS_OPTION_TABLE_H_
#define TCMALLOC_OPTIONS_OPTION_TABLE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "options/options.h"

namespace tcmalloc {

// Types of options: the field of Options that a variable sets, and its permitted values.
struct SwitchType {
  bool Options::* field;
};
struct CountType {
  uint64_t Options::* field;
  uint64_t min;
  uint64_t max;
  bool power_of_two = false;  // no other value is permitted
};
// A size in units of its own. K, M, G or T behind the number selects another unit.
enum class SizeUnit : uint64_t { kByte = 1, kMebibyte = uint64_t{1} << 20 };
struct SizeType {
  uint64_t Options::* field;
  uint64_t min;  // in units, as the field and the maximum
  uint64_t max;
  SizeUnit unit;
};
// A size in bytes, whose negative values have a meaning.
struct SignedSizeType {
  int64_t Options::* field;
  int64_t min;
  int64_t max;
};
struct RealType {
  double Options::* field;
  double min;
  double max;
};
// One of a few words; `words[i]` stands for the i-th value of the enumeration.
template <typename Enumeration>
struct WordType {
  Enumeration Options::* field;
  std::span<const std::string_view> words;
};
// A set of words, separated by commas; bit i of the field stands for `words[i]`.
struct SetType {
  uint64_t Options::* field;
  std::span<const std::string_view> words;
};
struct PathType {
  PathOption Options::* field;
  uint8_t index;  // among the paths
};
inline constexpr size_t kPathOptions = 10;
using OptionType =
    std::variant<SwitchType, CountType, SizeType, SignedSizeType, RealType, WordType<ModeOption>,
                 WordType<FrontEndOption>, WordType<CpuIdsOption>, WordType<PageHeapOption>,
                 WordType<CgroupOption>, WordType<ProfileFormatOption>, WordType<StackTraceOption>,
                 WordType<HeapCheckOption>, WordType<HeapCheckMappingsOption>, SetType, PathType>;

struct OptionRow {
  std::string_view variable;
  OptionType type;
  std::string_view unit;     // empty if there is none
  std::string_view meaning;  // sentences, without markup
  // Says in a message what a number that is not positive sets. Empty if it means nothing special.
  std::string_view zero = {};
};

// A variable of gperftools that has no effect here, and the reason.
struct IgnoredVariable {
  std::string_view variable;
  std::string_view reason;  // sentences, without markup
};
std::span<const IgnoredVariable> IgnoredVariables();

// A variable that starts a tool of gperftools which this library lacks.
struct MissingTool {
  std::string_view variable;
  std::string_view tool;
};
std::span<const MissingTool> MissingTools();

// Returns false if a variable is certainly none of the table, and no missing tool's. Reads none of
// their names, which lie where processes without such variables touch nothing
// (src/libs/rare_text.ld).
bool MayBeOption(std::string_view variable);

// Bounds that the table respects, so that buffers of a fixed size suffice.
inline constexpr size_t kMostOptions = 128;
inline constexpr size_t kLongestVariable = 64;

// The words of TCMALLOC_PROFILE_TYPE, in the order of ProfileTypeOption.
inline constexpr std::string_view kProfileTypes[] = {"heap",        "peak",      "growth",
                                                     "allocations", "lifetimes", "fragmentation"};
// The words of TCMALLOC_STACKTRACE_METHOD, in the order of StackTraceOption.
inline constexpr std::string_view kStackTraceMethods[] = {
    "tables", "frame_pointers", "libunwind",        "generic",
    "libgcc", "generic_fp",     "generic_fp_unsafe"};

// Returns the rows in the order of the documentation. docs/tuning.md is generated from them.
std::span<const OptionRow> OptionTable();

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_OPTION_TABLE_H_
