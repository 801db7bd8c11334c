// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_
#define TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_

#include <cstddef>
#include <string_view>

namespace tcmalloc {

// Writes the name of a function without its parameters, as a programmer knows it, to `text`, and
// returns its part of it: the qualified name in a mangled C++ name of the usual kinds. Other names
// stay as they are.
std::string_view ReadableName(std::string_view symbol, char* text, size_t capacity);

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_READABLE_NAME_H_
