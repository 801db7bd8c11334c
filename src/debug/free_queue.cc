// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/free_queue.h"

#include <algorithm>

#include "base/attributes.h"

namespace tcmalloc {
namespace {

// One more than the index of the thread's part; 0 of a thread that has none yet.
constinit thread_local uint32_t own_part TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = 0;

}  // namespace

size_t FreeQueue::OwnPart() {
  if (TCMALLOC_UNLIKELY(own_part == 0)) {
    own_part = threads_.fetch_add(1, std::memory_order_relaxed) % kParts + 1;
  }
  return own_part - 1;
}

BlockRecord* FreeQueue::Pop(Part& part, const Entry* entries, size_t most_spare) {
  const Entry entry = entries[part.first];
  part.first = (part.first + 1) % kBlocks;
  --part.count;
  part.bytes.store(part.bytes.load(std::memory_order_relaxed) - entry.bytes,
                   std::memory_order_relaxed);
  if (TCMALLOC_UNLIKELY(!part.spares.Put(entry.block, most_spare))) return entry.block;
  part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
  return nullptr;
}

// Few programs have more than one thread that frees; the division is for the others.
size_t FreeQueue::ShareOf(size_t limit) const {
  const size_t parts = threads_.load(std::memory_order_relaxed);
  return TCMALLOC_LIKELY(parts <= 1) ? limit : limit / std::min(parts, kParts);
}

BlockRecord* FreeQueue::Push(BlockRecord* block, size_t limit) {
  const size_t bytes = block->total;
  const size_t index = OwnPart();
  Part& part = parts_[index];
  Entry* entries = storage_.entries[index];
  const size_t share = ShareOf(limit);
  SpinLockHolder holder(part.lock);
  const bool is_full = part.count == kBlocks;
  BlockRecord* victim = is_full ? Pop(part, entries, share / kSpareDivisor) : nullptr;
  entries[(part.first + part.count) % kBlocks] = {block, bytes};
  ++part.count;
  const size_t sum = part.bytes.load(std::memory_order_relaxed) + bytes;
  part.bytes.store(sum, std::memory_order_relaxed);
  const bool is_excess = victim == nullptr && sum > share;
  return TCMALLOC_UNLIKELY(is_excess) ? Pop(part, entries, share / kSpareDivisor) : victim;
}

BlockRecord* FreeQueue::PopExcess(size_t limit) {
  const size_t index = OwnPart();
  Part& part = parts_[index];
  const size_t share = ShareOf(limit);
  if (TCMALLOC_LIKELY(part.bytes.load(std::memory_order_relaxed) <= share)) return nullptr;
  SpinLockHolder holder(part.lock);
  BlockRecord* victim = nullptr;
  while (victim == nullptr && part.count > 0 &&
         part.bytes.load(std::memory_order_relaxed) > share) {
    victim = Pop(part, storage_.entries[index], share / kSpareDivisor);
  }
  return victim;
}

BlockRecord* FreeQueue::TakeSpare(uint8_t size_class) {
  Part& part = parts_[OwnPart()];
  if (part.spare_bytes.load(std::memory_order_relaxed) == 0) return nullptr;
  SpinLockHolder holder(part.lock);
  BlockRecord* block = part.spares.Take(size_class);
  part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
  return block;
}

BlockRecord* FreeQueue::TakeAnySpare() {
  for (Part& part : parts_) {
    if (part.spare_bytes.load(std::memory_order_relaxed) == 0) continue;
    SpinLockHolder holder(part.lock);
    BlockRecord* block = part.spares.TakeAny();
    part.spare_bytes.store(part.spares.bytes(), std::memory_order_relaxed);
    if (block != nullptr) return block;
  }
  return nullptr;
}

size_t FreeQueue::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) {
    bytes += part.bytes.load(std::memory_order_relaxed);
    bytes += part.spare_bytes.load(std::memory_order_relaxed);
  }
  return bytes;
}

}  // namespace tcmalloc
