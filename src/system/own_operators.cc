// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/own_operators.h"

#include <algorithm>
#include <iterator>

#include "system/own_object.h"

// The operators, by their symbols, because only a name for data converts to an address in a
// constant. Weak, because they may be null, and a static program shall not get ours for this.
extern "C" {
[[gnu::weak]] extern const char tcmalloc_new_symbol[] asm("_Znwm");
[[gnu::weak]] extern const char tcmalloc_new_array_symbol[] asm("_Znam");
[[gnu::weak]] extern const char tcmalloc_new_aligned_symbol[] asm("_ZnwmSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_new_array_aligned_symbol[] asm("_ZnamSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_new_nothrow_symbol[] asm("_ZnwmRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_new_array_nothrow_symbol[] asm("_ZnamRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_new_aligned_nothrow_symbol[] asm(
    "_ZnwmSt11align_val_tRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_new_array_aligned_nothrow_symbol[] asm(
    "_ZnamSt11align_val_tRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_delete_symbol[] asm("_ZdlPv");
[[gnu::weak]] extern const char tcmalloc_delete_array_symbol[] asm("_ZdaPv");
[[gnu::weak]] extern const char tcmalloc_delete_aligned_symbol[] asm("_ZdlPvSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_delete_array_aligned_symbol[] asm("_ZdaPvSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_delete_nothrow_symbol[] asm("_ZdlPvRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_delete_array_nothrow_symbol[] asm("_ZdaPvRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_delete_aligned_nothrow_symbol[] asm(
    "_ZdlPvSt11align_val_tRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_delete_array_aligned_nothrow_symbol[] asm(
    "_ZdaPvSt11align_val_tRKSt9nothrow_t");
[[gnu::weak]] extern const char tcmalloc_delete_sized_symbol[] asm("_ZdlPvm");
[[gnu::weak]] extern const char tcmalloc_delete_array_sized_symbol[] asm("_ZdaPvm");
[[gnu::weak]] extern const char tcmalloc_delete_sized_aligned_symbol[] asm(
    "_ZdlPvmSt11align_val_t");
[[gnu::weak]] extern const char tcmalloc_delete_array_sized_aligned_symbol[] asm(
    "_ZdaPvmSt11align_val_t");
}

namespace tcmalloc {
namespace {

// A form of an operator, and the one to which the C++ library's version of it leads.
struct Form {
  const char* itself;
  const char* leads_to;
};

// In the order of LeadingForm, each for single objects and for arrays.
const Form kForms[][2] = {
    {{tcmalloc_new_nothrow_symbol, tcmalloc_new_symbol},
     {tcmalloc_new_array_nothrow_symbol, tcmalloc_new_array_symbol}},
    {{tcmalloc_new_aligned_nothrow_symbol, tcmalloc_new_aligned_symbol},
     {tcmalloc_new_array_aligned_nothrow_symbol, tcmalloc_new_array_aligned_symbol}},
    {{tcmalloc_delete_sized_symbol, tcmalloc_delete_symbol},
     {tcmalloc_delete_array_sized_symbol, tcmalloc_delete_array_symbol}},
    {{tcmalloc_delete_sized_aligned_symbol, tcmalloc_delete_aligned_symbol},
     {tcmalloc_delete_array_sized_aligned_symbol, tcmalloc_delete_array_aligned_symbol}},
    {{tcmalloc_delete_nothrow_symbol, tcmalloc_delete_symbol},
     {tcmalloc_delete_array_nothrow_symbol, tcmalloc_delete_array_symbol}},
    {{tcmalloc_delete_aligned_nothrow_symbol, tcmalloc_delete_aligned_symbol},
     {tcmalloc_delete_array_aligned_nothrow_symbol, tcmalloc_delete_array_aligned_symbol}},
};

// An address is null as long as the dynamic linker has not come to this library, which may be asked
// for memory before.
bool IsOurs(const char* address) {
  return address == nullptr || __ehdr_start == nullptr || IsInOwnObject(address);
}

}  // namespace

bool OperatorsAreOurs() {
  return std::all_of(std::begin(kForms), std::end(kForms), [](const Form(&forms)[2]) {
    return IsOurs(forms[0].leads_to) && IsOurs(forms[1].leads_to);
  });
}

const void* ProgramsOperator(LeadingForm form, bool array) {
  const Form& found = kForms[static_cast<int>(form)][array ? 1 : 0];
  return IsOurs(found.itself) && !IsOurs(found.leads_to) ? found.leads_to : nullptr;
}

}  // namespace tcmalloc
