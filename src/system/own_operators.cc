// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/own_operators.h"

#include <algorithm>
#include <iterator>

// The linker's names for the first byte of this object and the one behind its last.
extern "C" {
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char _end[] __attribute__((weak, visibility("hidden")));
}

// The operators to which the C++ library's versions of all others lead, by their symbols, because
// only a name for data converts to an address in a constant. Weak, because they may be null, and a
// static program shall not get ours for this.
extern "C" {
[[gnu::weak]] extern const char tcmalloc_new_symbol[] asm("_Znwm");
[[gnu::weak]] extern const char tcmalloc_new_array_symbol[] asm("_Znam");
[[gnu::weak]] extern const char tcmalloc_new_aligned_symbol[] asm("_ZnwmSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_new_array_aligned_symbol[] asm("_ZnamSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_delete_symbol[] asm("_ZdlPv");
[[gnu::weak]] extern const char tcmalloc_delete_array_symbol[] asm("_ZdaPv");
[[gnu::weak]] extern const char tcmalloc_delete_aligned_symbol[] asm("_ZdlPvSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_delete_array_aligned_symbol[] asm("_ZdaPvSt11align_val_t");
}

namespace tcmalloc {
namespace {

const char* const kOperators[] = {
    tcmalloc_new_symbol,
    tcmalloc_new_array_symbol,
    tcmalloc_new_aligned_symbol,
    tcmalloc_new_array_aligned_symbol,
    tcmalloc_delete_symbol,
    tcmalloc_delete_array_symbol,
    tcmalloc_delete_aligned_symbol,
    tcmalloc_delete_array_aligned_symbol,
};

// An address is null as long as the dynamic linker has not come to this library, which may be asked
// for memory before.
bool IsOurs(const char* address) {
  return address == nullptr || (address >= __ehdr_start && address < _end);
}

}  // namespace

bool OperatorsAreOurs() {
  return __ehdr_start == nullptr ||
         std::all_of(std::begin(kOperators), std::end(kOperators), IsOurs);
}

}  // namespace tcmalloc
