// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions of the C++ library that the extension needs.

#ifndef TCMALLOC_EXTENSION_STRING_APPEND_H_
#define TCMALLOC_EXTENSION_STRING_APPEND_H_

#include <string>
#include <string_view>

namespace tcmalloc {

// There are two implementations, as of override/cxx_runtime.h; each library takes one.
// string_append_weak.cc uses the C++ library only if the process has one. string_append_strong.cc
// links it, with everything that system/weak_cxx_symbols.h names, for the static library.

void Append(std::string* text, std::string_view more);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_STRING_APPEND_H_
