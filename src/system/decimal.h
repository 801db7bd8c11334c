// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decimal numbers as the files of the kernel hold them.

#ifndef TCMALLOC_SYSTEM_DECIMAL_H_
#define TCMALLOC_SYSTEM_DECIMAL_H_

#include <cstdint>
#include <string_view>

namespace tcmalloc {

// Takes the digits at the front of `text`. A number that does not fit is UINT64_MAX. False, with
// nothing taken, if there are none.
inline bool TakeDecimal(std::string_view* text, uint64_t* number) {
  uint64_t value = 0;
  size_t digits = 0;
  for (; digits < text->size() && (*text)[digits] >= '0' && (*text)[digits] <= '9'; ++digits) {
    const auto digit = static_cast<uint64_t>((*text)[digits] - '0');
    if (__builtin_mul_overflow(value, uint64_t{10}, &value) ||
        __builtin_add_overflow(value, digit, &value)) {
      value = UINT64_MAX;
    }
  }
  text->remove_prefix(digits);
  *number = value;
  return digits != 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_DECIMAL_H_
