// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Handles requests for which no memory can be had.

#ifndef TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_
#define TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_

#include <atomic>
#include <cstddef>

#include "base/attributes.h"

namespace tcmalloc {

// A function that a failed C allocation calls before it gives up, or null. The function calls the
// new handler and tries again; it returns null when there is no handler, or when the handler threw.
// tc_set_new_mode sets it. A pointer keeps the C++ library out of C programs. It is read and
// written by relaxed operations, because it publishes nothing but itself.
using NewModeRetry = void* (*)(size_t size, size_t alignment);
extern constinit std::atomic<NewModeRetry> new_mode_retry;

inline constexpr size_t kNoAlignment = 1;

// Sets errno to ENOMEM and returns null, or returns a block for which a new handler made room.
TCMALLOC_COLD void* FailAllocation(size_t size, size_t alignment);

// The malloc of sizes and states that its fast paths refuse. The header of every thread has it as
// well.
void* MallocSlow(size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_
