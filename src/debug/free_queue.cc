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

void* FreeQueue::Push(void* user, size_t bytes) {
  const size_t index = OwnPart();
  Part& part = parts_[index];
  SpinLockHolder holder(part.lock);
  void* victim = part.count == kBlocks ? Pop(part, storage_.entries[index]) : nullptr;
  storage_.entries[index][(part.first + part.count) % kBlocks] = {user, bytes};
  ++part.count;
  part.bytes.store(part.bytes.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  return victim;
}

void* FreeQueue::PopExcess(size_t limit) {
  const size_t index = OwnPart();
  Part& part = parts_[index];
  const size_t parts = std::clamp<size_t>(threads_.load(std::memory_order_relaxed), 1, kParts);
  if (part.bytes.load(std::memory_order_relaxed) <= limit / parts) return nullptr;
  SpinLockHolder holder(part.lock);
  return part.count > 0 && part.bytes.load(std::memory_order_relaxed) > limit / parts
             ? Pop(part, storage_.entries[index])
             : nullptr;
}

size_t FreeQueue::bytes() const {
  size_t bytes = 0;
  for (const Part& part : parts_) bytes += part.bytes.load(std::memory_order_relaxed);
  return bytes;
}

}  // namespace tcmalloc
