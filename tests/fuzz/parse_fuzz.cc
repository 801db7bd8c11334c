// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Values of options, compared with what strtod and its kin make of them.

#include <algorithm>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
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

std::optional<int64_t> Integer(std::string_view text) {
  std::string digits = Trim(text);
  const bool minus = digits.starts_with('-');
  if (minus || digits.starts_with('+')) digits.erase(0, 1);
  if (digits.empty() || !ConsistsOf(digits, "0123456789")) return std::nullopt;
  // The largest number, or the smallest, where it does not fit.
  return std::strtoll(((minus ? "-" : "") + digits).c_str(), nullptr, 10);
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

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  while (!input.empty()) {
    const std::string_view text = input.TakeUntil('\0');
    // Of exactly this size, so that a read beyond its end is noticed.
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view view(exact.data(), exact.size());
    TCMALLOC_CHECK(ParseSwitch(view) == Switch(text));
    TCMALLOC_CHECK(ParseCount(view) == Count(text));
    TCMALLOC_CHECK(ParseInteger(view) == Integer(text));
    CheckReal(ParseReal(view), Real(text));
  }
  return 0;
}
