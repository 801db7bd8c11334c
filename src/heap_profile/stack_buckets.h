// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where the lists of a StackTable begin.

#ifndef TCMALLOC_HEAP_PROFILE_STACK_BUCKETS_H_
#define TCMALLOC_HEAP_PROFILE_STACK_BUCKETS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Levels of buckets, each of 16 times as many as the one below. Nothing moves from one level to the
// next: a search looks in one bucket of each, the newest first, and what is added goes into the
// newest. So most programs touch the few pages of the lowest level, and the lists stay short where
// stacks are many.
//
// Thread safe, without a lock; async-signal-safe. constinit, all zero.
class StackBuckets {
 public:
  using Bucket = std::atomic<uint32_t>;

  constexpr StackBuckets() = default;
  StackBuckets(const StackBuckets&) = delete;
  StackBuckets& operator=(const StackBuckets&) = delete;

  // Returns the level into which a stack goes now; those from 0 to it are in use.
  int newest() const {
    // Acquire pairs with the release in BeginLevel and publishes the buckets.
    return newest_.load(std::memory_order_acquire);
  }

  // Returns the bucket of a hash. Requires the level to be in use.
  Bucket& Of(int level, uint32_t hash) { return BucketsOf(level)[hash & (SizeOf(level) - 1)]; }

  // Begins another level if lists of `stacks` stacks have become long. Without memory they become
  // longer.
  void GrowFor(uint32_t stacks) {
    const int level = newest();
    if (stacks > SizeOf(level) * kLongList && level + 1 < kLevels) BeginLevel(level + 1);
  }

  // Calls f(Bucket&) for each bucket in use.
  template <typename F>
  void ForEach(F f) {
    for (int level = newest(); level >= 0; --level) {
      Bucket* const buckets = BucketsOf(level);
      for (uint32_t i = 0; i < SizeOf(level); ++i) f(buckets[i]);
    }
  }

  // Returns the bytes of address space of the levels that were mapped.
  size_t mapped_bytes() const;

  static constexpr uint32_t SizeOf(int level) { return kLowest << (kStepBits * level); }

  // The stacks for each bucket of the newest level beyond which another one begins.
  static constexpr uint32_t kLongList = 2;

 private:
  static constexpr uint32_t kLowest = 1 << 12;
  static constexpr int kStepBits = 4;
  static constexpr int kLevels = 3;

  Bucket* BucketsOf(int level) {
    // Relaxed, because newest() was read before.
    return level == 0 ? lowest_ : mapped_[level - 1].load(std::memory_order_relaxed);
  }
  void BeginLevel(int level);

  std::atomic<int> newest_{0};
  std::atomic<Bucket*> mapped_[kLevels - 1] = {};
  Bucket lowest_[kLowest] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_STACK_BUCKETS_H_
