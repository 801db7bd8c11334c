// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/own_operators.h"

#include <algorithm>
#include <iterator>

// The linker's names for the first byte of this object and the one behind its last.
extern "C" {
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char _end[] __attribute__((weak, visibility("hidden")));
}

namespace tcmalloc {
namespace {

// The operators to which the C++ library's versions of all others lead, by their symbols, because
// only a name for data converts to an address in a constant.
extern const char new_symbol[] asm("_Znwm");
extern const char new_array_symbol[] asm("_Znam");
extern const char new_aligned_symbol[] asm("_ZnwmSt11align_val_t");
extern const char new_array_aligned_symbol[] asm("_ZnamSt11align_val_t");
extern const char delete_symbol[] asm("_ZdlPv");
extern const char delete_array_symbol[] asm("_ZdaPv");
extern const char delete_aligned_symbol[] asm("_ZdlPvSt11align_val_t");
extern const char delete_array_aligned_symbol[] asm("_ZdaPvSt11align_val_t");

const char* const kOperators[] = {
    new_symbol,    new_array_symbol,    new_aligned_symbol,    new_array_aligned_symbol,
    delete_symbol, delete_array_symbol, delete_aligned_symbol, delete_array_aligned_symbol,
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
