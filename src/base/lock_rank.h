// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The one lock order of the allocator. A thread may wait for a lock only if its rank is greater
// than the rank of every lock that it holds, and never holds two locks of one rank. Builds with
// debug checks verify both at each acquisition. docs/locking.md lists the locks of each rank.

#ifndef TCMALLOC_BASE_LOCK_RANK_H_
#define TCMALLOC_BASE_LOCK_RANK_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

enum class LockRank : uint8_t {
  kInitialization,
  kLimits,        // who looks at the limits, and sheds memory
  kPeak,          // what the heap held at its peak
  kThreadCaches,  // the list of thread caches
  kCacheBudget,
  kFullChains,      // one per thread cache
  kCpuSlab,         // one per CPU or concurrency id
  kSizeClassLists,  // which size classes have lists
  kTransferCache,   // one per size class
  kCentralList,     // one or several per size class
  kFreeBits,        // one per size class
  kSpanZones,
  kSampledObjects,
  kChainArrays,
  kProfile,      // logs and copies of samples
  kBlockTable,   // one per shard of a table of all blocks
  kDebugBlocks,  // parts of the table of checked blocks, and pages of records
  kDebugQueue,   // one per part of the queue of freed blocks
  kPageHeap,
  kMetadata,  // the arena and pools of allocator metadata
  kSystem,    // sbrk and the list of mapped regions
};
inline constexpr size_t kLockRankCount = static_cast<size_t>(LockRank::kSystem) + 1;

// Track the locks of the running thread in builds with debug checks. Each ends the process if the
// thread may not take the lock.
//
// Called before the thread waits for a lock of this rank.
void CheckRankOrder(LockRank rank);
// Called when it has the lock, whether it waited or not.
void NoteRankTaken(LockRank rank);
void NoteRankReleased(LockRank rank);

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_LOCK_RANK_H_
