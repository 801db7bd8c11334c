// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Facts that the kernel hands to a process when it starts.

#ifndef TCMALLOC_SYSTEM_AUXV_H_
#define TCMALLOC_SYSTEM_AUXV_H_

#include <sys/auxv.h>

#include <cstddef>

#include "system/system_calls.h"

namespace tcmalloc {

// Returns the bytes of a page of the kernel: 4, 16 or 64 KiB, known only at run time.
inline size_t KernelPageSize() {
  const size_t bytes = system_calls.getauxval(AT_PAGESZ);
  return bytes != 0 ? bytes : 4096;
}

// Returns true if the program has more rights than the user who started it. That user must then
// have no influence on it.
inline bool IsSecureProcess() { return system_calls.getauxval(AT_SECURE) != 0; }

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_AUXV_H_
