// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Knows which operators new and delete the process uses.

#ifndef TCMALLOC_SYSTEM_OWN_OPERATORS_H_
#define TCMALLOC_SYSTEM_OWN_OPERATORS_H_

#include <cstddef>
#include <cstdint>
#include <new>

namespace tcmalloc {

// Returns false if the process has an operator new or delete from elsewhere. A program may replace
// some of them, and relies on all others to lead there. Then a block of one function may go to
// another one for which it was not asked, with another size, and nothing is wrong.
bool OperatorsAreOurs();

// The forms that lead to another one in the C++ library: those without an exception, and of delete
// those with a size.
enum class LeadingForm : uint8_t {
  kNewNoThrow,
  kAlignedNewNoThrow,
  kDeleteSized,
  kAlignedDeleteSized,
  kDeleteNoThrow,
  kAlignedDeleteNoThrow,
};

// Returns the program's own operator, of arrays or of single objects, to which the C++ standard
// lets `form` lead. Null if the program has none or replaces the form as well.
const void* ProgramsOperator(LeadingForm form, bool array);

using NewOperator = void* (*)(size_t);
using AlignedNewOperator = void* (*)(size_t, std::align_val_t);
using DeleteOperator = void (*)(void*);
using AlignedDeleteOperator = void (*)(void*, std::align_val_t);

// Returns an operator, or null, as the function that it is.
template <typename Operator>
Operator ProgramsOperatorAs(LeadingForm form, bool array) {
  return reinterpret_cast<Operator>(reinterpret_cast<uintptr_t>(ProgramsOperator(form, array)));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_OWN_OPERATORS_H_
