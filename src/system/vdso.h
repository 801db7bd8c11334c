// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the functions that the kernel maps into every process, vdso(7).

#ifndef TCMALLOC_SYSTEM_VDSO_H_
#define TCMALLOC_SYSTEM_VDSO_H_

#include <cstdint>

namespace tcmalloc {

// Returns the address of the function `name` in the 64-bit ELF image at `image`, which is mapped as
// a whole and was not relocated; 0 if it has none, or is no such image. Reads only the dynamic
// section, because some kernels leave section headers out. Thread safe, allocates nothing.
uintptr_t FindVdsoFunction(uintptr_t image, const char* name);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_VDSO_H_
