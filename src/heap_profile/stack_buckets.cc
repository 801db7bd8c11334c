// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/stack_buckets.h"

#include "system/own_memory.h"

namespace tcmalloc {

void StackBuckets::BeginLevel(int level) {
  const size_t bytes = size_t{SizeOf(level)} * sizeof(Bucket);
  void* const memory = MapZeroed(bytes);
  if (memory == nullptr) return;
  Bucket* none = nullptr;
  if (!mapped_[level - 1].compare_exchange_strong(none, static_cast<Bucket*>(memory),
                                                  std::memory_order_relaxed)) {
    UnmapZeroed(memory, bytes);
    return;
  }
  // Release pairs with the acquire in newest and publishes the buckets.
  newest_.store(level, std::memory_order_release);
}

size_t StackBuckets::mapped_bytes() const {
  size_t bytes = 0;
  for (int level = newest(); level > 0; --level) bytes += size_t{SizeOf(level)} * sizeof(Bucket);
  return bytes;
}

}  // namespace tcmalloc
