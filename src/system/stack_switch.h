// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_SYSTEM_STACK_SWITCH_H_
#define TCMALLOC_SYSTEM_STACK_SWITCH_H_

namespace tcmalloc {

// Calls f(argument) on the stack that ends at `stack_end`, a multiple of 16. `f` returns, and does
// not walk the stack that it runs on, which ends here. The caller blocks signals: their handlers
// would find the alternate stack free that it may be on.
void CallOnStack(char* stack_end, void (*f)(void* argument), void* argument);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_STACK_SWITCH_H_
