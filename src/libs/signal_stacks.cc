// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stands before libc's function that sets the stack of signal handlers, so that neither the leak
// checker nor the profiler handles signals on stacks that threads share or that are too small.

#include <signal.h>

#include "base/attributes.h"
#include "system/alternate_stacks.h"

extern "C" TCMALLOC_EXPORT int sigaltstack(const stack_t* stack, stack_t* old) noexcept {
  return tcmalloc::SetAlternateStack(stack, old);
}
