// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The debug mode's record of a block, which lies apart from the block.

#ifndef TCMALLOC_DEBUG_BLOCK_RECORD_H_
#define TCMALLOC_DEBUG_BLOCK_RECORD_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "allocator/block_family.h"
#include "base/relaxed.h"
#include "heap_profile/stack_table.h"
#include "pages/page_types.h"

namespace tcmalloc {

enum class BlockState : uint8_t {
  kFree,  // the record is no block's
  kLive,
  kChanging,  // somebody has it to himself: who frees and fills it, or hands it out again
  kQueued,    // freed and filled; the free queue has it, as a spare maybe, or it is kept for good
};

// The state of a block with a count of its changes, which goes on when the record is used for
// another block: two equal words mean that nothing has happened in between, but for a wrap of the
// count. Copied like a plain word.
class BlockVersion {
 public:
  constexpr BlockVersion() = default;
  BlockVersion(const BlockVersion& other) : word_(other.word()) {}
  BlockVersion& operator=(const BlockVersion& other) {
    word_.store(other.word(), std::memory_order_relaxed);
    return *this;
  }

  static BlockState StateOf(uint32_t word) { return static_cast<BlockState>(word % kStep); }
  BlockState state() const { return StateOf(word()); }

  // Takes the block if its word still is `seen`. Returns false otherwise.
  [[nodiscard]] bool TryBeginChange(uint32_t seen) {
    // Acquire pairs with the release in EndChange.
    if (!word_.compare_exchange_strong(seen, Changing(seen), std::memory_order_acquire,
                                       std::memory_order_relaxed)) {
      return false;
    }
    // Release pairs with the acquire in HasChangedSince: whoever read what is written from now on
    // reads the word.
    std::atomic_thread_fence(std::memory_order_release);
    return true;
  }
  // Takes a block that nobody else may take.
  void BeginChange() {
    word_.store(Changing(word()), std::memory_order_relaxed);
    // Release pairs with the acquire in HasChangedSince, as in TryBeginChange.
    std::atomic_thread_fence(std::memory_order_release);
  }
  void EndChange(BlockState state) {
    // Release pairs with the acquire in Current and publishes the change.
    word_.store(word() / kStep * kStep + static_cast<uint32_t>(state), std::memory_order_release);
  }

  // Acquire pairs with the release in EndChange.
  uint32_t Current() const { return word_.load(std::memory_order_acquire); }
  // Returns true if what was read since `seen` may be in part from before a change and in part from
  // after it.
  bool HasChangedSince(uint32_t seen) const {
    // Acquire pairs with the release in BeginChange.
    std::atomic_thread_fence(std::memory_order_acquire);
    return StateOf(seen) == BlockState::kChanging || word() != seen;
  }

 private:
  static constexpr uint32_t kStep = 4;

  uint32_t word() const { return word_.load(std::memory_order_relaxed); }
  static uint32_t Changing(uint32_t word) {
    return (word / kStep + 1) * kStep + static_cast<uint32_t>(BlockState::kChanging);
  }

  std::atomic<uint32_t> word_{0};
};

// The bytes before the program's; a multiple of every alignment that malloc promises.
inline constexpr size_t kFrontBytes = 32;

// One block, in one cache line. Begins as zeros. Its memory, [base, base + total), is
//
//     fence | size and seal, kSealBytes | the program's bytes, from user on | fence
//
// The record is the truth: nothing in the block decides anything while the heap can be locked.
struct alignas(64) BlockRecord {
  Relaxed<BlockRecord*> next;  // in its bucket, or in a list of free records
  Relaxed<char*> user;
  size_t size;           // bytes that the program asked for
  bool in_table : 1;     // because no seal leads to this record
  bool paged : 1;        // in pages of its own, with a guard page behind them
  bool unreadable : 1;   // freed, and its pages may not be read
  bool plain_front : 1;  // kFrontBytes long
  // The size class of memory that may be used again for another block, behind a front fence of
  // kFrontBytes; 0 of all other memory.
  uint8_t size_class;
  uint64_t total : kAddressBits;  // bytes from base on that are the block's
  // Not in the word of the total, which is read soon after these were written.
  BlockFamily family;
  uint8_t log2_alignment;         // that the program asked for, 0 for none
  uint64_t front : kAddressBits;  // bytes from base to user
  StackId allocated_at;
  StackId freed_at;
  uint32_t allocating_thread_low;
  uint32_t freeing_thread_low;
  uint16_t allocating_thread_high;
  uint16_t freeing_thread_high;
  BlockVersion version;

  bool is_live() const { return version.state() == BlockState::kLive; }
  // Sets all that says where the block is.
  void SetPlace(char* base, size_t bytes, char* users) {
    constexpr uint64_t kMask = (uint64_t{1} << kAddressBits) - 1;
    user = users;
    total = bytes & kMask;
    front = static_cast<uint64_t>(users - base) & kMask;
    plain_front = front == kFrontBytes;
  }
  char* base() const { return user - front; }
  char* end() const { return user + size; }
  uint64_t alignment() const { return log2_alignment != 0 ? uint64_t{1} << log2_alignment : 0; }
  void set_alignment(uint64_t alignment) {
    log2_alignment = alignment != 0 ? static_cast<uint8_t>(std::countr_zero(alignment)) : 0;
  }

  // Names of threads are pthread_t's, in 48 bits, which all addresses of programs have.
  uintptr_t allocating_thread() const {
    return uintptr_t{allocating_thread_high} << 32 | allocating_thread_low;
  }
  void set_allocating_thread(uintptr_t thread) {
    allocating_thread_low = static_cast<uint32_t>(thread);
    allocating_thread_high = static_cast<uint16_t>(thread >> 32);
  }
  uintptr_t freeing_thread() const {
    return uintptr_t{freeing_thread_high} << 32 | freeing_thread_low;
  }
  void set_freeing_thread(uintptr_t thread) {
    freeing_thread_low = static_cast<uint32_t>(thread);
    freeing_thread_high = static_cast<uint16_t>(thread >> 32);
  }

  bool Surrounds(const void* address) const {
    const auto a = reinterpret_cast<uintptr_t>(address);
    return a - reinterpret_cast<uintptr_t>(base()) < total;
  }
};
static_assert(sizeof(BlockRecord) == 64);

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_BLOCK_RECORD_H_
