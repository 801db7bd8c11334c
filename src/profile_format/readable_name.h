// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_
#define TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace tcmalloc {

// Writes the name of a function as `tcm` shows it: without parameters, and without the arguments of
// templates, but with those of lambdas. Returns the part of `text` that it takes. Returns `symbol`
// if that is no mangled name of a function in C++, or cannot be read, or has no room. Allocates
// nothing, and takes at most 40 KiB of stack whatever the symbol is; 6 KiB for all that compilers
// were seen to make.
std::string_view ReadableName(std::string_view symbol, char* text, size_t capacity);

// Room for such names. Those of templates may take thousands of characters.
inline constexpr size_t kReadableNameBytes = 1024;
using ReadableNameText = char[kReadableNameBytes];

// Returns the first characters of such a name, `most` at most, for a line with other words behind.
inline std::string_view BeginningOfName(std::string_view symbol, ReadableNameText& text,
                                        size_t most) {
  const std::string_view name = ReadableName(symbol, text, kReadableNameBytes);
  return {name.data(), std::min(name.size(), most)};
}

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_
