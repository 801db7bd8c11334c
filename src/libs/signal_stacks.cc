// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stands before libc's function that sets the stack of signal handlers, so that the leak checker
// does not hold threads on one that they share.

#include <signal.h>

#include "base/attributes.h"
#include "system/alternate_stacks.h"

extern "C" TCMALLOC_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  return tcmalloc::SetAlternateStack(stack, old);
}
