// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Values of environment variables. Nothing here depends on the locale or allocates.

#ifndef TCMALLOC_OPTIONS_PARSE_H_
#define TCMALLOC_OPTIONS_PARSE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tcmalloc {

// Goes by the first character: t, T, y, Y and 1 say true, and so does the empty text; f, F, n, N
// and 0 say false.
std::optional<bool> ParseSwitch(std::string_view text);

// Decimal digits, blanks around them and a plus sign allowed. A number that does not fit is
// UINT64_MAX.
std::optional<uint64_t> ParseCount(std::string_view text);

// A size in units of `unit` bytes: a count, or a count with the suffix K, M, G or T, in either
// case and also as KB or KiB, which are powers of 1024 bytes. Rounded up to whole units, so that a
// limit does not become 0, which is none. A size that does not fit is that of UINT64_MAX bytes.
std::optional<uint64_t> ParseSize(std::string_view text, uint64_t unit);

// A size in bytes with a sign, plus or minus. A size that does not fit is INT64_MIN or INT64_MAX.
std::optional<int64_t> ParseSignedSize(std::string_view text);

// A decimal number like "1", "-0.5", ".5" or "2.5e-3", blanks around it and a sign allowed. No
// infinities and no hexadecimal digits. Exact to a few units in the last place; a number that does
// not fit is the largest double.
std::optional<double> ParseReal(std::string_view text);

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_PARSE_H_
