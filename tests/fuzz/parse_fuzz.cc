// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Values of options, compared with what strtod and its kin make of them.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "options/parse.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

bool ConsistsOf(std::string_view text, const char* characters) {
  return text.find_first_not_of(characters) == std::string_view::npos;
}

std::string Trim(std::string_view text) {
  const auto is_blank = [](unsigned char c) { return std::isspace(c) != 0; };
  const auto first = std::find_if_not(text.begin(), text.end(), is_blank);
  const auto end = std::find_if_not(text.rbegin(), text.rend(), is_blank).base();
  return first < end ? std::string(first, end) : std::string();
}

std::optional<bool> Switch(std::string_view text) {
  if (text.empty() || ConsistsOf(text.substr(0, 1), "tTyY1")) return true;
  if (ConsistsOf(text.substr(0, 1), "fFnN0")) return false;
  return std::nullopt;
}

std::optional<uint64_t> Count(std::string_view text) {
  std::string digits = Trim(text);
  if (digits.starts_with('+')) digits.erase(0, 1);
  if (digits.empty() || !ConsistsOf(digits, "0123456789")) return std::nullopt;
  // The largest number where it does not fit.
  return std::strtoull(digits.c_str(), nullptr, 10);
}

// A number and a suffix, in bytes; saturates.
std::optional<unsigned __int128> Bytes(std::string_view text) {
  std::string number = Trim(text);
  constexpr const char* kSuffixes[] = {"k", "kb", "kib", "m", "mb", "mib",
                                       "g", "gb", "gib", "t", "tb", "tib"};
  const size_t digits = number.find_last_of("0123456789") + 1;
  const std::string suffix = number.substr(digits);
  std::string lower = suffix;
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  unsigned __int128 factor = 1;
  if (!suffix.empty()) {
    const auto* found = std::find(std::begin(kSuffixes), std::end(kSuffixes), lower);
    if (found == std::end(kSuffixes) || suffix.find('I') != std::string::npos) return std::nullopt;
    for (auto i = (found - kSuffixes) / 3; i >= 0; --i) factor *= 1024;
  }
  const std::optional<uint64_t> count = Count(number.substr(0, digits));
  if (!count.has_value()) return std::nullopt;
  return std::min(*count * factor, static_cast<unsigned __int128>(UINT64_MAX));
}

std::optional<uint64_t> Size(std::string_view text, uint64_t unit) {
  if (const std::optional<uint64_t> count = Count(text)) return count;
  const std::optional<unsigned __int128> bytes = Bytes(text);
  if (!bytes.has_value()) return std::nullopt;
  return static_cast<uint64_t>((*bytes + unit - 1) / unit);
}

std::optional<int64_t> SignedSize(std::string_view text) {
  std::string size = Trim(text);
  const bool minus = size.starts_with('-');
  if (minus) size.erase(0, 1);
  if (minus && size.starts_with('+')) return std::nullopt;
  if (size != Trim(size)) return std::nullopt;
  const std::optional<uint64_t> magnitude = Size(size, 1);
  if (!magnitude.has_value()) return std::nullopt;
  if (*magnitude > INT64_MAX) return minus ? INT64_MIN : INT64_MAX;
  return minus ? -static_cast<int64_t>(*magnitude) : static_cast<int64_t>(*magnitude);
}

std::optional<double> Real(std::string_view text) {
  const std::string number = Trim(text);
  char* end = nullptr;
  const double value = std::strtod(number.c_str(), &end);
  if (number.empty() || *end != '\0' || !ConsistsOf(number, "0123456789.eE+-")) {
    return std::nullopt;
  }
  constexpr double kLargest = std::numeric_limits<double>::max();
  return std::clamp(value, -kLargest, kLargest);
}

void CheckReal(std::optional<double> parsed, std::optional<double> expected) {
  // A few units in the last place; fewer digits are left near zero.
  constexpr double kError = 1e-13;
  constexpr double kNearZero = 1e-300;
  TCMALLOC_CHECK_EQ(parsed.has_value(), expected.has_value());
  if (!parsed.has_value()) return;
  const double tolerance = std::max(std::abs(*expected) * kError, kNearZero);
  TCMALLOC_CHECK(*parsed == *expected || std::abs(*parsed - *expected) <= tolerance);
}

}  // namespace

TCM_FUZZ_TARGET(parse_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  while (!input.empty()) {
    const std::string_view text = input.TakeUntil('\0');
    // Of exactly this size, so that a read beyond its end is noticed.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view view(exact.data(), exact.size());
    TCMALLOC_CHECK(ParseSwitch(view) == Switch(text));
    TCMALLOC_CHECK(ParseCount(view) == Count(text));
    for (const uint64_t unit : {uint64_t{1}, uint64_t{1} << 20}) {
      TCMALLOC_CHECK(ParseSize(view, unit) == Size(text, unit));
    }
    TCMALLOC_CHECK(ParseSignedSize(view) == SignedSize(text));
    CheckReal(ParseReal(view), Real(text));
  }
  return 0;
}
