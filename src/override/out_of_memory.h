// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What happens when no memory can be had.

#ifndef TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_
#define TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_

#include <atomic>
#include <cstddef>

#include "base/attributes.h"

namespace tcmalloc {

// What a failed C allocation does before it gives up: null, or a function that calls the new
// handler and tries again. tc_set_new_mode sets it; being a pointer it keeps the C++ library out of
// C programs. Returns null when there is no handler, or it threw. Read and written by relaxed
// operations, because the pointer publishes nothing but itself.
using NewModeRetry = void* (*)(size_t size, size_t alignment);
extern constinit std::atomic<NewModeRetry> new_mode_retry;

inline constexpr size_t kNoAlignment = 1;

// Sets errno to ENOMEM and returns null, or a block that a new handler made room for.
TCMALLOC_COLD void* FailAllocation(size_t size, size_t alignment);

// malloc where its fast paths refuse. The header of every thread has it as well.
void* MallocSlow(size_t size);

}  // namespace tcmalloc

#endif  // TCMALLOC_OVERRIDE_OUT_OF_MEMORY_H_
