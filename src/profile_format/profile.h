// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The parts of a profile.

#ifndef TCMALLOC_PROFILE_FORMAT_PROFILE_H_
#define TCMALLOC_PROFILE_FORMAT_PROFILE_H_

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace tcmalloc {

// Names the quantity that a number of a sample counts, such as {"objects", "count"} or
// {"space", "bytes"}.
struct ValueType {
  std::string_view type;
  std::string_view unit;
};

// A fact about a sample: a number with a unit, or a text.
struct SampleLabel {
  std::string_view key;
  int64_t number = 0;
  std::string_view unit;
  std::string_view text;
};

inline constexpr size_t kMostValues = 8;
inline constexpr size_t kMostLabels = 8;

struct ProfileSample {
  std::span<const uintptr_t> stack;     // return addresses, innermost first
  std::span<const int64_t> values;      // one for each type, at most kMostValues
  std::span<const SampleLabel> labels;  // at most kMostLabels
};

struct ProfileHeader {
  std::span<const ValueType> sample_types;
  std::string_view default_sample_type;
  ValueType period_type;
  int64_t period = 0;
  int64_t time_ns = 0;  // since 1970
  int64_t duration_ns = 0;
  std::span<const std::string_view> comments;
  std::string_view drop_frames;  // a regular expression for functions that are not to be shown
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_PROFILE_H_
