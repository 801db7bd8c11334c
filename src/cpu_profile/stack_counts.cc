// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/stack_counts.h"

#include <algorithm>
#include <bit>
#include <cerrno>

#include "system/address_window.h"
#include "system/own_memory.h"

namespace tcmalloc {
namespace {

constexpr size_t kLimitShare = 64;

uint64_t HashOf(std::span<void* const> stack) {
  uint64_t hash = stack.size();
  for (const void* frame : stack) {
    hash = (std::rotl(hash, 5) ^ reinterpret_cast<uintptr_t>(frame)) * 0x9e3779b97f4a7c15U;
  }
  return hash ^ hash >> 29;
}

}  // namespace

bool StackCounts::Map(size_t words) {
  const int saved_errno = errno;
  const size_t most = AddressSpaceLimit() / kLimitShare;
  for (words = std::bit_floor(words); words_ == nullptr && words >= kLeastWords; words /= 2) {
    const size_t slots = words / kWordsPerSlot;
    const size_t bytes = (words + slots) * sizeof(uint64_t);
    if (bytes > most && words > kLeastWords) continue;
    void* memory = MapSparse(bytes);
    if (memory == nullptr) continue;
    words_ = static_cast<uint64_t*>(memory);
    slots_ = reinterpret_cast<std::atomic<uint64_t>*>(words_ + words);
    slot_count_ = slots;
    word_count_ = words;
  }
  // Place 0 is that of no record.
  used_words_.store(1, std::memory_order_relaxed);
  added_.store(0, std::memory_order_relaxed);
  lost_.store(0, std::memory_order_relaxed);
  errno = saved_errno;
  return words_ != nullptr;
}

void StackCounts::Unmap() {
  const int saved_errno = errno;
  if (words_ != nullptr) {
    UnmapSparse(words_, (word_count_ + slot_count_) * sizeof(uint64_t));
    own_bytes.Remove(used_bytes_.exchange(0, std::memory_order_relaxed));
    used_slots_.Clear();
  }
  words_ = nullptr;
  slots_ = nullptr;
  slot_count_ = 0;
  errno = saved_errno;
}

bool StackCounts::Holds(const Record& record, std::span<void* const> stack) {
  if (record.depth != stack.size()) return false;
  for (size_t i = 0; i < stack.size(); ++i) {
    if (record.frames()[i] != reinterpret_cast<uintptr_t>(stack[i])) return false;
  }
  return true;
}

void StackCounts::CountUsed(size_t bytes) {
  used_bytes_.fetch_add(bytes, std::memory_order_relaxed);
  own_bytes.Add(bytes);
}

// Returns the slot for a new record of a stack, 0 if there is no room.
uint64_t StackCounts::MakeRecord(std::span<void* const> stack, uint64_t tag, uint64_t weight) {
  const uint64_t need = kHeadWords + stack.size();
  const uint64_t place = used_words_.fetch_add(need, std::memory_order_relaxed);
  if (place + need > word_count_) return 0;
  CountUsed(need * sizeof(uint64_t));
  Record& record = RecordOf(place);
  record.count.store(weight, std::memory_order_relaxed);
  record.depth = stack.size();
  for (size_t i = 0; i < stack.size(); ++i) {
    record.frames()[i] = reinterpret_cast<uintptr_t>(stack[i]);
  }
  return tag | place;
}

void StackCounts::Add(std::span<void* const> stack, uint64_t weight) {
  stack = stack.first(std::min<size_t>(stack.size(), kMostFrames));
  added_.fetch_add(weight, std::memory_order_relaxed);
  const uint64_t hash = HashOf(stack);
  const uint64_t tag = hash & ~uint64_t{UINT32_MAX};
  uint64_t made = 0;
  for (size_t probe = 0; probe < std::min(kMostProbes, slot_count_); ++probe) {
    std::atomic<uint64_t>& slot = slots_[(hash + probe) & (slot_count_ - 1)];
    // Acquire pairs with the release in Add: the record is complete.
    uint64_t held = slot.load(std::memory_order_acquire);
    if (held == 0) {
      if (made == 0) made = MakeRecord(stack, tag, weight);
      if (made == 0) break;
      // Release pairs with the acquires in Add and ForEach: the record is complete.
      if (slot.compare_exchange_strong(held, made, std::memory_order_acq_rel,
                                       std::memory_order_acquire)) {
        const size_t at = ((hash + probe) & (slot_count_ - 1)) * sizeof(slot);
        CountUsed(used_slots_.Use(at, at + sizeof(slot)));
        return;
      }
    }
    if ((held & ~uint64_t{UINT32_MAX}) == tag && Holds(RecordOf(held), stack)) {
      RecordOf(held).count.fetch_add(weight, std::memory_order_relaxed);
      return;
    }
  }
  lost_.fetch_add(weight, std::memory_order_relaxed);
}

}  // namespace tcmalloc
