// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/parse.h"

#include <algorithm>
#include <cstddef>
#include <limits>

namespace tcmalloc {
namespace {

// No double has a larger exponent, even with thousands of digits before or behind the point.
constexpr int kLargestExponent = 100'000;

std::string_view TrimBlanks(std::string_view text) {
  constexpr std::string_view kBlanks = " \t\n\v\f\r";
  const size_t first = text.find_first_not_of(kBlanks);
  if (first == std::string_view::npos) return {};
  text.remove_suffix(text.size() - 1 - text.find_last_not_of(kBlanks));
  text.remove_prefix(first);
  return text;
}

bool StartsWithDigit(std::string_view text) {
  return !text.empty() && text.front() >= '0' && text.front() <= '9';
}

unsigned TakeDigit(std::string_view* text) {
  const char digit = text->front();
  text->remove_prefix(1);
  return static_cast<unsigned>(digit - '0');
}

// Removes a sign from the front. Returns true if it is a minus.
bool TakeSign(std::string_view* text) {
  const bool minus = text->starts_with('-');
  if (minus || text->starts_with('+')) text->remove_prefix(1);
  return minus;
}

// Removes a plus sign, if there is one, and decimal digits from the front. Returns UINT64_MAX if
// the number does not fit, and no value if there is no digit.
std::optional<uint64_t> TakeCount(std::string_view* text) {
  if (text->starts_with('+')) text->remove_prefix(1);
  if (!StartsWithDigit(*text)) return std::nullopt;
  uint64_t value = 0;
  bool fits = true;
  while (StartsWithDigit(*text)) {
    const unsigned digit = TakeDigit(text);
    fits = fits && !__builtin_mul_overflow(value, uint64_t{10}, &value) &&
           !__builtin_add_overflow(value, digit, &value);
  }
  return fits ? value : UINT64_MAX;
}

// Returns the power of two that a suffix such as "K", "kb" or "KiB" stands for.
std::optional<int> ShiftOfSuffix(std::string_view suffix) {
  constexpr std::string_view kLetters = "kKmMgGtT";
  const size_t letter = kLetters.find(suffix.front());
  if (letter == std::string_view::npos) return std::nullopt;
  suffix.remove_prefix(1);
  if (suffix.size() == 2 && suffix.front() == 'i') suffix.remove_prefix(1);
  if (!suffix.empty() && suffix != "B" && suffix != "b") return std::nullopt;
  return static_cast<int>(letter / 2 + 1) * 10;
}

// A number as digits x 10^exponent.
struct Decimal {
  double digits = 0;
  int exponent = 0;
  bool any = false;  // whether there was a digit
};

Decimal TakeMantissa(std::string_view* text) {
  Decimal number;
  for (bool fraction = false;; fraction = true) {
    while (StartsWithDigit(*text)) {
      number.any = true;
      const unsigned digit = TakeDigit(text);
      // Digits beyond the precision of a double only move the point.
      const bool counts = number.digits < 1e17;
      if (counts) number.digits = number.digits * 10 + digit;
      if (counts == fraction) number.exponent += fraction ? -1 : 1;
    }
    if (fraction || !text->starts_with('.')) return number;
    text->remove_prefix(1);
  }
}

// Removes an exponent such as "e-12" from the front. Returns no value if the text starts like one
// but is none.
std::optional<int> TakeExponent(std::string_view* text) {
  if (!text->starts_with('e') && !text->starts_with('E')) return 0;
  text->remove_prefix(1);
  const bool minus = TakeSign(text);
  if (!StartsWithDigit(*text)) return std::nullopt;
  int exponent = 0;
  while (StartsWithDigit(*text)) {
    exponent = std::min(exponent * 10 + static_cast<int>(TakeDigit(text)), kLargestExponent);
  }
  return minus ? -exponent : exponent;
}

double Scale(Decimal number) {
  constexpr double kLargest = std::numeric_limits<double>::max();
  double value = number.digits;
  for (; number.exponent > 0 && value != 0 && value < kLargest / 10; --number.exponent) value *= 10;
  if (number.exponent > 0 && value != 0) return kLargest;
  for (; number.exponent < 0 && value != 0; ++number.exponent) value /= 10;
  return value;
}

}  // namespace

std::optional<bool> ParseSwitch(std::string_view text) {
  if (text.empty()) return true;
  if (std::string_view("tTyY1").find(text.front()) != std::string_view::npos) return true;
  if (std::string_view("fFnN0").find(text.front()) != std::string_view::npos) return false;
  return std::nullopt;
}

std::optional<uint64_t> ParseCount(std::string_view text) {
  text = TrimBlanks(text);
  const std::optional<uint64_t> value = TakeCount(&text);
  return text.empty() ? value : std::nullopt;
}

std::optional<uint64_t> ParseSize(std::string_view text, uint64_t unit) {
  text = TrimBlanks(text);
  const std::optional<uint64_t> number = TakeCount(&text);
  if (!number.has_value() || text.empty()) return number;
  const std::optional<int> shift = ShiftOfSuffix(text);
  if (!shift.has_value()) return std::nullopt;
  const uint64_t bytes = *number > UINT64_MAX >> *shift ? UINT64_MAX : *number << *shift;
  return bytes / unit + (bytes % unit == 0 ? 0 : 1);
}

std::optional<int64_t> ParseSignedSize(std::string_view text) {
  text = TrimBlanks(text);
  const bool minus = text.starts_with('-');
  if (minus) text.remove_prefix(1);
  if (minus && !StartsWithDigit(text)) return std::nullopt;
  const std::optional<uint64_t> magnitude = ParseSize(text, 1);
  if (!magnitude.has_value()) return std::nullopt;
  if (*magnitude > uint64_t{INT64_MAX}) return minus ? INT64_MIN : INT64_MAX;
  const auto value = static_cast<int64_t>(*magnitude);
  return minus ? -value : value;
}

std::optional<double> ParseReal(std::string_view text) {
  text = TrimBlanks(text);
  const bool minus = TakeSign(&text);
  Decimal number = TakeMantissa(&text);
  if (!number.any) return std::nullopt;
  const std::optional<int> exponent = TakeExponent(&text);
  if (!exponent.has_value() || !text.empty()) return std::nullopt;
  number.exponent += *exponent;
  return minus ? -Scale(number) : Scale(number);
}

std::optional<uint64_t> ParseSet(std::string_view text, std::span<const std::string_view> words) {
  uint64_t set = 0;
  const char* begin = text.data();
  const char* const end = begin + text.size();
  while (true) {
    const char* comma = std::find(begin, end, ',');
    const std::string_view word(begin, static_cast<size_t>(comma - begin));
    const auto known = std::ranges::find(words, word);
    if (known == words.end()) return std::nullopt;
    set |= uint64_t{1} << (known - words.begin());
    if (comma == end) return set;
    begin = comma + 1;
  }
}

}  // namespace tcmalloc
