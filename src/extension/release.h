// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Gives memory back on request. Every function keeps errno, and does nothing in a signal handler
// that interrupted the slow path.

#ifndef TCMALLOC_EXTENSION_RELEASE_H_
#define TCMALLOC_EXTENSION_RELEASE_H_

#include <cstddef>

namespace tcmalloc {

// Empties the calling thread's cache and the transfer caches, and gives all free spans back to the
// system. Returns the bytes that went back.
size_t ReleaseFreeMemory();

// Gives at least this many bytes of free spans back to the system, or all if there are fewer.
// Returns the bytes that went back.
size_t ReleaseFreeSpans(size_t bytes);

// Returns the objects in the calling thread's cache to the lists that all threads share.
void FlushThreadCache();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_RELEASE_H_
