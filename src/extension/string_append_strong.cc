// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <string>
#include <string_view>

#include "base/attributes.h"
#include "extension/string_append.h"

extern "C" {
extern const char _ZTVN10__cxxabiv117__class_type_infoE[];
extern const char _ZTVN10__cxxabiv120__si_class_type_infoE[];
void __cxa_pure_virtual();
void _ZSt20__throw_length_errorPKc(const char*);
}

namespace tcmalloc {
namespace {

// Weak references alone do not extract anything from an archive.
struct References {
  const void* tables[2];
  void (*pure_virtual)();
  void (*throw_length_error)(const char*);
};
TCMALLOC_RETAINED constinit const References references = {
    {_ZTVN10__cxxabiv117__class_type_infoE, _ZTVN10__cxxabiv120__si_class_type_infoE},
    __cxa_pure_virtual,
    _ZSt20__throw_length_errorPKc};

}  // namespace

void Append(std::string* text, std::string_view more) { text->append(more.data(), more.size()); }

}  // namespace tcmalloc
