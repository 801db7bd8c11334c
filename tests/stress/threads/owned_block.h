// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks that say who owns them, so that a block which is handed out twice is seen at once.
//
// The second word of a block in use is its owner word, made of the block's address; in a free block
// it is anything else. An allocator that writes no more than the first word of a free block leaves
// it alone. The owner word changes by compare-and-swap only: of two owners of one block, one finds
// the other. Needs nothing but the address to check and free a block, in any thread or vfork child.

#ifndef TCMALLOC_TESTS_STRESS_THREADS_OWNED_BLOCK_H_
#define TCMALLOC_TESTS_STRESS_THREADS_OWNED_BLOCK_H_

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {

class OwnedBlock {
 public:
  static constexpr size_t kMinSize = 16;

  static void* Allocate(size_t size) {
    size = std::max(size, kMinSize);
    auto* words = static_cast<uint64_t*>(malloc(size));
    PROGRAM_CHECK(words != nullptr);
    const uint64_t owner = OwnerWord(words);
    uint64_t before = __atomic_load_n(&words[1], __ATOMIC_RELAXED);
    PROGRAM_CHECK(before != owner && "the block was handed out twice");
    PROGRAM_CHECK(Exchange(&words[1], before, owner) && "the block is written to by another owner");
    words[0] = size ^ owner;
    ForEachCheckedWord(words, size, [owner](uint64_t& word, size_t i) { word = owner + i; });
    return words;
  }

  static void Check(void* block) {
    auto* words = static_cast<uint64_t*>(block);
    const uint64_t owner = OwnerWord(words);
    PROGRAM_CHECK(__atomic_load_n(&words[1], __ATOMIC_RELAXED) == owner);
    const size_t size = words[0] ^ owner;
    PROGRAM_CHECK(size >= kMinSize && size <= kMaxSize);
    ForEachCheckedWord(words, size,
                       [owner](uint64_t& word, size_t i) { PROGRAM_CHECK(word == owner + i); });
  }

  static void Free(void* block) {
    Check(block);
    auto* words = static_cast<uint64_t*>(block);
    PROGRAM_CHECK(Exchange(&words[1], OwnerWord(words), 0) &&
                  "the block was freed by another owner");
    free(block);
  }

 private:
  static constexpr size_t kMaxSize = size_t{1} << 30;
  static constexpr size_t kWords = 8;  // checked at the beginning of a block

  static uint64_t OwnerWord(const void* block) {
    return (reinterpret_cast<uintptr_t>(block) ^ 0x5bf03635d1f8b2a9) * 0x9e3779b97f4a7c15;
  }
  static bool Exchange(uint64_t* word, uint64_t before, uint64_t after) {
    return __atomic_compare_exchange_n(word, &before, after, false, __ATOMIC_RELAXED,
                                       __ATOMIC_RELAXED);
  }

  // Visits the first words after the owner word, and the last one.
  template <typename Visit>
  static void ForEachCheckedWord(uint64_t* words, size_t size, Visit visit) {
    const size_t end = size / sizeof(uint64_t);
    for (size_t i = 2; i < std::min(end, kWords); ++i) visit(words[i], i);
    if (end > kWords) visit(words[end - 1], end - 1);
  }
};

// Slots that threads share: what one put in, another takes out and frees.
class OwnedMailbox {
 public:
  OwnedMailbox() = default;
  OwnedMailbox(const OwnedMailbox&) = delete;
  OwnedMailbox& operator=(const OwnedMailbox&) = delete;
  ~OwnedMailbox() {
    for (std::atomic<void*>& slot : slots_) Replace(slot, nullptr);
  }

  void Put(void* block, Random& random) { Replace(slots_[random.Below(slots_.size())], block); }

 private:
  static void Replace(std::atomic<void*>& slot, void* block) {
    // Acquire and release hand over the contents.
    void* old = slot.exchange(block, std::memory_order_acq_rel);
    if (old != nullptr) OwnedBlock::Free(old);
  }

  std::array<std::atomic<void*>, 256> slots_{};
};

// Live blocks of one thread. Every few steps a block goes to another thread.
class OwnedBlocks {
 public:
  OwnedBlocks(OwnedMailbox& mailbox, uint64_t seed) : mailbox_(mailbox), random_(seed, kMaxSize) {}
  OwnedBlocks(const OwnedBlocks&) = delete;
  OwnedBlocks& operator=(const OwnedBlocks&) = delete;
  ~OwnedBlocks() {
    for (void*& block : blocks_) Free(block);
  }

  Random& random() { return random_; }

  void Steps(int count) {
    for (int i = 0; i < count; ++i) Step();
  }

 private:
  static constexpr size_t kMaxSize = 40'000;

  void Step() {
    void*& block = blocks_[random_.Below(blocks_.size())];
    if (block == nullptr) {
      block = OwnedBlock::Allocate(Size());
    } else if (random_.Below(4) == 0) {
      mailbox_.Put(block, random_);
      block = nullptr;
    } else {
      Free(block);
    }
  }

  // Few sizes most of the time, so that threads meet in the same classes.
  size_t Size() { return random_.Below(8) == 0 ? random_.Size() : 16 + 48 * random_.Below(4); }

  static void Free(void*& block) {
    if (block != nullptr) OwnedBlock::Free(block);
    block = nullptr;
  }

  OwnedMailbox& mailbox_;
  Random random_;
  std::array<void*, 128> blocks_{};
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_THREADS_OWNED_BLOCK_H_
