// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <cstddef>
#include <string>
#include <string_view>

#include "extension/string_append.h"
#include "system/cxx_library.h"

// std::string::append(const char*, size_t), weak, so that it stays null without a C++ library.
#pragma weak _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKcm

extern "C" void* _ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKcm(
    std::string* text, const char* more, size_t bytes);

namespace tcmalloc {

void Append(std::string* text, std::string_view more) {
  // The C++ library exists, because the caller has a string.
  auto* append = ResolveWeak(&_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKcm,
                             "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE6appendEPKcm");
  if (append != nullptr) append(text, more.data(), more.size());
}

}  // namespace tcmalloc
