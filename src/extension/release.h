// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Giving memory back on request.

#ifndef TCMALLOC_EXTENSION_RELEASE_H_
#define TCMALLOC_EXTENSION_RELEASE_H_

#include <cstddef>

namespace tcmalloc {

// Empties the calling thread's cache and the transfer caches, and gives all free spans back to the
// system. Returns the bytes that went back. Keeps errno.
size_t ReleaseFreeMemory();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_RELEASE_H_
