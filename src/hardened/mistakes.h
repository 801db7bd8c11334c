// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reports the mistakes that the hardened mode finds, and ends the process.

#ifndef TCMALLOC_HARDENED_MISTAKES_H_
#define TCMALLOC_HARDENED_MISTAKES_H_

#include <cstddef>

#include "allocator/block_functions.h"
#include "base/attributes.h"
#include "hardened/block_map.h"

// Blocks and claims come by value: a caller whose fast path keeps them in registers would have to
// keep them in memory otherwise.
namespace tcmalloc {

// Reports a free of an address at which no live block begins; `state` is its state, or null.
[[noreturn]] TCMALLOC_COLD void CrashOnNoLiveBlock(const void* address, const BlockMap::Byte* state,
                                                   const char* call);

// Report a block that a call of another family, or with another size or alignment, frees.
[[noreturn]] TCMALLOC_COLD void CrashOnFamily(const void* block, LiveBlock live, BlockClaim claim);
[[noreturn]] TCMALLOC_COLD void CrashOnSize(const void* block, LiveBlock live, BlockClaim claim);
[[noreturn]] TCMALLOC_COLD void CrashOnAlignment(const void* block, LiveBlock live,
                                                 BlockClaim claim);

// Report a byte that was written: behind a block, right before it, or in a freed one. A byte that
// is one of the last of the block's memory, far from the block, is more likely one before the next.
[[noreturn]] TCMALLOC_COLD void CrashOnOverflow(const char* block, const LiveBlock& live,
                                                const char* damage, const char* call);
[[noreturn]] TCMALLOC_COLD void CrashOnUnderflow(const void* block, size_t size, const char* call);
[[noreturn]] TCMALLOC_COLD void CrashOnWriteAfterFree(const void* block, size_t bytes,
                                                      const void* damage);

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_MISTAKES_H_
