// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork: the child gets a heap that no vanished thread holds a lock of.

#ifndef TCMALLOC_HEAP_FORK_H_
#define TCMALLOC_HEAP_FORK_H_

namespace tcmalloc {

// Registers handlers that take every lock of the heap, in rank order, before a fork and free them
// after it. Registers once; may allocate, and may be called again where it failed.
void RegisterForkHandlers();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_FORK_H_
