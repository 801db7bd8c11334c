// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells whose operator new and operator delete the process uses.

#ifndef TCMALLOC_HEAP_PROFILE_OWN_OPERATORS_H_
#define TCMALLOC_HEAP_PROFILE_OWN_OPERATORS_H_

namespace tcmalloc {

// Returns true if the program has an operator new or delete of its own in place of one of ours. It
// need not replace all forms: in the C++ library the others call those that it replaces, here they
// do not. So a block may come from the program's new, by malloc, and go to our sized delete. False
// in a static program.
bool OperatorsAreReplaced();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_OWN_OPERATORS_H_
