// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Values of environment variables. Nothing here depends on the locale or allocates.

#ifndef TCMALLOC_OPTIONS_PARSE_H_
#define TCMALLOC_OPTIONS_PARSE_H_

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace tcmalloc {

// Parses by the first character: t, T, y, Y and 1 mean true, as does the empty text; f, F, n, N and
// 0 mean false.
std::optional<bool> ParseSwitch(std::string_view text);

// Parses decimal digits, with blanks around them and a plus sign allowed. Returns UINT64_MAX for a
// number that does not fit.
std::optional<uint64_t> ParseCount(std::string_view text);

// Parses a size in units of `unit` bytes: a count, or a count with the suffix K, M, G or T, in
// either case and also as KB or KiB, which are powers of 1024 bytes. Rounds up to whole units, so
// that a limit does not become 0, which means none. A size that does not fit is that of UINT64_MAX
// bytes.
std::optional<uint64_t> ParseSize(std::string_view text, uint64_t unit);

// Parses a size in bytes with an optional sign. Returns INT64_MIN or INT64_MAX for a size that does
// not fit.
std::optional<int64_t> ParseSignedSize(std::string_view text);

// Parses a decimal number like "1", "-0.5", ".5" or "2.5e-3", with blanks around it and a sign
// allowed, but no infinities and no hexadecimal digits. Exact to a few units in the last place.
// Returns the largest double for a number that does not fit.
std::optional<double> ParseReal(std::string_view text);

// Parses words separated by commas. Returns a number with bit i set if `words[i]` is among them.
// Requires at most 64 words.
std::optional<uint64_t> ParseSet(std::string_view text, std::span<const std::string_view> words);

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_PARSE_H_
