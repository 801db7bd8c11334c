// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that were freed and wait before their memory is used again.

#ifndef TCMALLOC_DEBUG_FREE_QUEUE_H_
#define TCMALLOC_DEBUG_FREE_QUEUE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"

namespace tcmalloc {

// First in, first out, in as many parts as there are threads, up to kParts: each has room for
// kBlocks blocks and its share of the bytes. Called inside the slow path only.
class FreeQueue {
 public:
  static constexpr size_t kBlocks = 1024;
  static constexpr size_t kParts = 8;

  struct Entry {
    void* user;
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
  void* Push(void* user, size_t bytes, size_t limit);
  // Takes the first block out of the running thread's part if all parts together may hold no more
  // than `limit` bytes and this one holds more than its share. Returns null otherwise.
  void* PopExcess(size_t limit);

  // Returns the bytes in all parts.
  size_t bytes() const;

 private:
  struct alignas(64) Part {
    SpinLock lock{LockRank::kDebugQueue};
    uint32_t first TCMALLOC_GUARDED_BY(lock) = 0;
    uint32_t count TCMALLOC_GUARDED_BY(lock) = 0;
    std::atomic<size_t> bytes{0};  // changed under the lock
  };

  size_t OwnPart();
  // What each part may hold if all together may hold `limit`.
  size_t ShareOf(size_t limit) const;
  // `entries` are those of the part.
  static void* Pop(Part& part, const Entry* entries) TCMALLOC_REQUIRES(part.lock);

  std::atomic<uint32_t> threads_{0};  // that ever freed a block
  Part parts_[kParts];
  Storage& storage_;  // of each part the entries, guarded by its lock
};

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_FREE_QUEUE_H_
