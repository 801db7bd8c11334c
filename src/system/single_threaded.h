// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_SYSTEM_SINGLE_THREADED_H_
#define TCMALLOC_SYSTEM_SINGLE_THREADED_H_

#include "base/attributes.h"

// Of the C library since glibc 2.32. Elsewhere its address is null.
extern "C" __attribute__((weak)) char __libc_single_threaded;

namespace tcmalloc {

// Returns true if the process has only this thread for sure. That can change only where the thread
// makes another one.
TCMALLOC_ALWAYS_INLINE bool IsSingleThreaded() {
  return &__libc_single_threaded != nullptr && __libc_single_threaded != 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_SINGLE_THREADED_H_
