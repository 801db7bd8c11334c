// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Knows which operators new and delete the process uses.

#ifndef TCMALLOC_SYSTEM_OWN_OPERATORS_H_
#define TCMALLOC_SYSTEM_OWN_OPERATORS_H_

namespace tcmalloc {

// Returns false if the process has an operator new or delete from elsewhere. A program may replace
// some of them, and relies on all others to lead there. Then a block of one function may go to
// another one for which it was not asked, with another size, and nothing is wrong.
bool OperatorsAreOurs();

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_OWN_OPERATORS_H_
