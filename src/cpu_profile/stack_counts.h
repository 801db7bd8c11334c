// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts samples by their stack.

#ifndef TCMALLOC_CPU_PROFILE_STACK_COUNTS_H_
#define TCMALLOC_CPU_PROFILE_STACK_COUNTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "system/own_memory.h"

namespace tcmalloc {

// The deepest stack of a CPU profile, as gperftools has it.
inline constexpr int kMostFrames = 254;

// A hash table of stacks that signal handlers fill: Add takes no lock, waits for nobody, allocates
// nothing and may be interrupted by another Add of the same thread at any instruction. A stack that
// finds no room is counted as lost. Pages of the table cost memory once a stack lies in them.
//
// A slot is 0 or holds the upper half of its stack's hash, and the place of its record in the
// arena. A record is written before its slot, and only its count changes afterwards. Hence the sum
// of all counts and of lost() is what was added, once no Add is under way.
class StackCounts {
 public:
  constexpr StackCounts() = default;
  StackCounts(const StackCounts&) = delete;
  StackCounts& operator=(const StackCounts&) = delete;

  // Maps an empty table, with room for `words` words of records, or half as often as needed until
  // the system grants it. Where address space is limited (RLIMIT_AS, RLIMIT_DATA) the table takes
  // at most 1/64 of the limit, or has kLeastWords words. Returns false if the system grants none.
  // Keeps errno.
  [[nodiscard]] bool Map(size_t words = kDefaultWords);
  // Gives the memory back. Nobody may be in Add.
  void Unmap();

  // Counts a stack `weight` times. The stack is cut at kMostFrames.
  void Add(std::span<void* const> stack, uint64_t weight);

  // Calls visit(stack, count) for every stack. May run beside Add, whose stacks it may miss.
  template <typename Visit>
  void ForEach(Visit visit) const {
    // An empty table need not be read.
    if (used_words_.load(std::memory_order_relaxed) <= 1) return;
    for (size_t i = 0; i < slot_count_; ++i) {
      // Acquire pairs with the release in Add: the record is complete.
      const uint64_t slot = slots_[i].load(std::memory_order_acquire);
      if (slot == 0) continue;
      const Record& record = RecordOf(slot);
      visit(std::span<const uintptr_t>(record.frames(), record.depth),
            record.count.load(std::memory_order_relaxed));
    }
  }

  uint64_t added() const {
    return added_.load(std::memory_order_relaxed);
  }  // weights, lost ones included
  uint64_t lost() const { return lost_.load(std::memory_order_relaxed); }

 private:
  static constexpr size_t kDefaultWords = size_t{16} << 20;
  static constexpr size_t kLeastWords = size_t{16} << 10;
  static constexpr size_t kMostProbes = 64;
  // As many as a record of 30 frames takes.
  static constexpr size_t kWordsPerSlot = 32;

  struct Record {
    std::atomic<uint64_t> count;
    uint64_t depth;

    // The addresses, behind the record itself.
    uintptr_t* frames() { return reinterpret_cast<uintptr_t*>(this + 1); }
    const uintptr_t* frames() const { return reinterpret_cast<const uintptr_t*>(this + 1); }
  };
  static constexpr size_t kHeadWords = sizeof(Record) / sizeof(uint64_t);

  Record& RecordOf(uint64_t slot) const {
    return *reinterpret_cast<Record*>(words_ + (slot & UINT32_MAX));
  }
  uint64_t MakeRecord(std::span<void* const> stack, uint64_t tag, uint64_t weight);
  void CountUsed(size_t bytes);
  static bool Holds(const Record& record, std::span<void* const> stack);

  uint64_t* words_ = nullptr;
  std::atomic<uint64_t>* slots_ = nullptr;
  size_t slot_count_ = 0;  // a power of two
  size_t word_count_ = 0;
  std::atomic<uint64_t> used_words_{0};
  std::atomic<uint64_t> added_{0};
  std::atomic<uint64_t> lost_{0};
  // Counted among own_bytes: the records, and pages of slots.
  std::atomic<size_t> used_bytes_{0};
  UsedPages<kDefaultWords / kWordsPerSlot * sizeof(uint64_t)> used_slots_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_STACK_COUNTS_H_
