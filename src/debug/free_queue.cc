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

void* FreeQueue::Pop(Part& part, const Entry* entries) {
  const Entry entry = entries[part.first];
  part.first = (part.first + 1) % kBlocks;
  --part.count;
  part.bytes.store(part.bytes.load(std::memory_order_relaxed) - entry.bytes,
                   std::memory_order_relaxed);
  return entry.user;
}

// Few programs have more than one thread that frees; the division is for the others.
size_t FreeQueue::ShareOf(size_t limit) const {
  const size_t parts = threads_.load(std::memory_order_relaxed);
  return TCMALLOC_LIKELY(parts <= 1) ? limit : limit / std::min(parts, kParts);
}

void* FreeQueue::Push(void* user, size_t bytes, size_t limit) {
  const size_t index = OwnPart();
  Part& part = parts_[index];
  Entry* entries = storage_.entries[index];
  const size_t share = ShareOf(limit);
  SpinLockHolder holder(part.lock);
  void* victim = part.count == kBlocks ? Pop(part, entries) : nullptr;
  entries[(part.first + part.count) % kBlocks] = {user, bytes};
  ++part.count;
  const size_t sum = part.bytes.load(std::memory_order_relaxed) + bytes;
  part.bytes.store(sum, std::memory_order_relaxed);
  return victim == nullptr && sum > share ? Pop(part, entries) : victim;
}

void* FreeQueue::PopExcess(size_t limit) {
  const size_t index = OwnPart();
  Part& part = parts_[index];
  const size_t share = ShareOf(limit);
  if (part.bytes.load(std::memory_order_relaxed) <= share) return nullptr;
  SpinLockHolder holder(part.lock);
  return part.count > 0 && part.bytes.load(std::memory_order_relaxed) > share
             ? Pop(part, storage_.entries[index])
             : nullptr;
}

size_t FreeQueue::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) bytes += part.bytes.load(std::memory_order_relaxed);
  return bytes;
}

}  // namespace tcmalloc
