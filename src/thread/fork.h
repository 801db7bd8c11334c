// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork: the child gets a heap that no vanished thread was changing.

#ifndef TCMALLOC_THREAD_FORK_H_
#define TCMALLOC_THREAD_FORK_H_

namespace tcmalloc {

// Registers handlers that close the heap's gate before a fork and open it afterwards. Registers
// once; may allocate, and may be called again where it failed.
void RegisterForkHandlers();

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_FORK_H_
