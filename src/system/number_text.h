// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Parses numbers in the form of the kernel's files.

#ifndef TCMALLOC_SYSTEM_NUMBER_TEXT_H_
#define TCMALLOC_SYSTEM_NUMBER_TEXT_H_

#include <cstdint>
#include <string_view>

namespace tcmalloc {

// Removes the decimal digits at the front of `text`. Returns false, with nothing removed, if there
// are none or their number does not fit.
[[nodiscard]] bool TakeNumber(std::string_view* text, uint64_t* number);

// Parses the whole of `text` as a number. Returns false if it is anything else.
[[nodiscard]] bool ParseNumber(std::string_view text, uint64_t* number);

// Works as TakeNumber for the hexadecimal digits that the kernel prints, without capitals.
[[nodiscard]] bool TakeHexNumber(std::string_view* text, uint64_t* number);

// Works as ParseNumber for such digits.
[[nodiscard]] bool ParseHexNumber(std::string_view text, uint64_t* number);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_NUMBER_TEXT_H_
