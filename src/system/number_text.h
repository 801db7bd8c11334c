// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Numbers as the files of the kernel hold them.

#ifndef TCMALLOC_SYSTEM_NUMBER_TEXT_H_
#define TCMALLOC_SYSTEM_NUMBER_TEXT_H_

#include <cstdint>
#include <string_view>

namespace tcmalloc {

// Takes the decimal digits at the front of `text`. False, with nothing taken, if there are none or
// their number does not fit.
[[nodiscard]] bool TakeNumber(std::string_view* text, uint64_t* number);

// Reads `text` as a number from its first character to its last. False if it is anything else.
[[nodiscard]] bool ParseNumber(std::string_view text, uint64_t* number);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_NUMBER_TEXT_H_
