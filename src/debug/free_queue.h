// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that were freed and wait before their memory is used again.

#ifndef TCMALLOC_DEBUG_FREE_QUEUE_H_
#define TCMALLOC_DEBUG_FREE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "debug/block_record.h"
#include "debug/spare_blocks.h"

namespace tcmalloc {

// First in, first out, in as many parts as there are threads, up to kParts: each has room for
// kBlocks blocks and its share of the bytes. A block that leaves becomes a spare of its part if that
// has room for it, and goes otherwise. Spares have a fraction of the bytes more. Called inside the
// slow path only.
class FreeQueue {
 public:
  static constexpr size_t kBlocks = 1024;
  static constexpr size_t kParts = 8;

  // Of the bytes that may wait, as many parts less may be spares.
  static constexpr size_t kSpareDivisor = 4;

  struct Entry {
    BlockRecord* block;
    size_t bytes;
  };
  // Apart, because it begins as zeros and takes no room in the library's file.
  struct Storage {
    Entry entries[kParts][kBlocks];
  };

  constexpr explicit FreeQueue(Storage& storage) : storage_(storage) {}
  FreeQueue(const FreeQueue&) = delete;
  FreeQueue& operator=(const FreeQueue&) = delete;

  // Adds a block to the running thread's part. Returns one that has to go, for the number of blocks
  // or, as PopExcess, for the bytes, or null.
  BlockRecord* Push(BlockRecord* block, size_t limit);
  // Takes the first block out of the running thread's part if all parts together may hold no more
  // than `limit` bytes and this one holds more than its share, until one has to go. Returns null
  // otherwise.
  BlockRecord* PopExcess(size_t limit);
  // Takes a spare of that size class out of the running thread's part; null if there is none.
  BlockRecord* TakeSpare(uint8_t size_class);
  // Takes a spare out of any part; null if there is none.
  BlockRecord* TakeAnySpare();

  // Returns the bytes in all parts, with those of spares.
  size_t bytes() const;

 private:
  struct alignas(64) Part {
    SpinLock lock{LockRank::kDebugQueue};
    uint32_t first TCMALLOC_GUARDED_BY(lock) = 0;
    uint32_t count TCMALLOC_GUARDED_BY(lock) = 0;
    std::atomic<size_t> bytes{0};  // without the spares; changed under the lock
    std::atomic<size_t> spare_bytes{0};  // likewise
    SpareBlocks spares TCMALLOC_GUARDED_BY(lock);
  };

  size_t OwnPart();
  // What each part may hold if all together may hold `limit`.
  size_t ShareOf(size_t limit) const;
  // Takes the first of `entries`, which are those of the part. Returns it if it has to go, because
  // it cannot become one of the spares, which may have `most_spare` bytes.
  static BlockRecord* Pop(Part& part, const Entry* entries, size_t most_spare)
      TCMALLOC_REQUIRES(part.lock);

  std::atomic<uint32_t> threads_{0};  // that ever freed a block
  Part parts_[kParts];
  Storage& storage_;  // of each part the entries, guarded by its lock
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_FREE_QUEUE_H_
