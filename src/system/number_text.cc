// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/number_text.h"

#include <cstddef>

namespace tcmalloc {

bool TakeNumber(std::string_view* text, uint64_t* number) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    const auto digit = static_cast<uint64_t>((*text)[digits] - '0');
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      return false;
    }
  }
  if (digits == 0) return false;
  text->remove_prefix(digits);
  *number = value;
  return true;
}

bool TakeHexNumber(std::string_view* text, uint64_t* number) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text->size(); ++digits) {
    const char c = (*text)[digits];
    const bool decimal = c >= '0' && c <= '9';
    if (!decimal && (c < 'a' || c > 'f')) break;
    if (value >> 60 != 0) return false;
    value = value << 4 | static_cast<uint64_t>(decimal ? c - '0' : c - 'a' + 10);
  }
  if (digits == 0) return false;
  text->remove_prefix(digits);
  *number = value;
  return true;
}

bool ParseNumber(std::string_view text, uint64_t* number) {
  return TakeNumber(&text, number) && text.empty();
}

bool ParseHexNumber(std::string_view text, uint64_t* number) {
  return TakeHexNumber(&text, number) && text.empty();
}

}  // namespace tcmalloc
