// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Who owns which memory: every block that a test has, filled with a pattern.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_LEDGER_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_LEDGER_H_

#include <malloc.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>

namespace tcmalloc::testing {

// How a process ends that found a fault. An abort of the allocator is a signal.
enum Verdict : int {
  kGood = 0,
  kTwice = 11,  // a block overlaps another one that is in use
  kSmall,       // a block is smaller than was asked for
  kChanged,     // somebody else wrote to a block
  kNoMemory,
  kLost,   // memory is in use that nobody has
  kChild,  // a forked child failed
  kCount   // a list is longer or shorter than its count
};

[[noreturn]] inline void EndWith(Verdict verdict) { ::_exit(verdict); }

// Called by the interrupted code and by the handler. No call is interrupted, because handlers run
// in the allocator alone. Allocates nothing.
class Ledger {
 public:
  // Takes a block that was asked for with `size` bytes.
  void* Add(void* block, size_t size) {
    if (block == nullptr) EndWith(kNoMemory);
    if (::malloc_usable_size(block) < size) EndWith(kSmall);
    const auto start = reinterpret_cast<uintptr_t>(block);
    for (size_t i = 0; i < count_; ++i) {
      if (start < blocks_[i].start + blocks_[i].size && blocks_[i].start < start + size) {
        EndWith(kTwice);
      }
    }
    if (count_ == blocks_.size()) EndWith(kNoMemory);
    blocks_[count_] = {start, size, static_cast<uint8_t>(++tag_ | 1)};
    ForEachByte(blocks_[count_], [&](volatile uint8_t& byte) { byte = blocks_[count_].tag; });
    ++count_;
    return block;
  }

  // Lets a block go that the caller is about to free.
  void* Remove(void* block) {
    const auto start = reinterpret_cast<uintptr_t>(block);
    for (size_t i = count_; i > 0; --i) {
      const Entry entry = blocks_[i - 1];
      if (entry.start != start) continue;
      ForEachByte(entry, [&](volatile uint8_t& byte) {
        if (byte != entry.tag) EndWith(kChanged);
      });
      blocks_[i - 1] = blocks_[--count_];
      return block;
    }
    EndWith(kChanged);
  }

  size_t count() const { return count_; }

 private:
  struct Entry {
    uintptr_t start;
    size_t size;
    uint8_t tag;
  };

  // All of a small block; the ends of a large one.
  template <typename F>
  static void ForEachByte(const Entry& entry, F f) {
    constexpr size_t kEnd = 512;
    auto* bytes = reinterpret_cast<volatile uint8_t*>(entry.start);
    for (size_t i = 0; i < entry.size; ++i) {
      if (i == kEnd && entry.size > 2 * kEnd) i = entry.size - kEnd;
      f(bytes[i]);
    }
  }

  std::array<Entry, 2048> blocks_{};
  size_t count_ = 0;
  uint8_t tag_ = 0;
};

inline constinit Ledger ledger;

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_LEDGER_H_
