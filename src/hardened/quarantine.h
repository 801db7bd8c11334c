// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Places where blocks wait, and leave in random order.

#ifndef TCMALLOC_HARDENED_QUARANTINE_H_
#define TCMALLOC_HARDENED_QUARANTINE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"
#include "thread/thread_parts.h"

namespace tcmalloc {

// For each size class a number of places, each empty or with a block. A block that comes takes a
// place at random, and the one that was there goes. There are kParts sets of places. Up to
// kOwnParts threads at a time have one to themselves, and need no atomic exchange; the others share
// the rest.
//
// The place for the next block is drawn ahead of it, and what waits there is fetched into the cache
// meanwhile, because whoever takes it out looks at all of it.
//
// Lock-free. A signal handler must not come in the middle of Exchange and call it; a fork may.
class Quarantine {
 public:
  static constexpr size_t kOwnParts = ThreadParts::kCount;
  static constexpr size_t kSharedParts = 4;
  static constexpr size_t kParts = kOwnParts + kSharedParts;
  static constexpr size_t kMostPlaces = 128;  // of a class in a part

  constexpr Quarantine() = default;
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  // Makes places for at most `bytes_per_class` bytes of each class in a part, or for one block.
  // Classes of more than `largest` bytes get none. Called once, before Exchange. Returns false if
  // there is no memory.
  [[nodiscard]] bool Initialize(MetadataArena& arena, size_t bytes_per_class, size_t largest,
                                uint64_t seed);

  // Returns the number of a part for the running thread, which so far has that of a `shared` one,
  // or 0: 1 to kOwnParts, for itself until it ends, as long as there is one, then up to kParts. A
  // thread without a front end, whose end nobody would notice or which has ended, shares one.
  static uint8_t ChoosePart(uint8_t shared);
  // Return how many parts threads have had to themselves, and if any shared one. The memory of
  // other parts was never touched.
  static size_t OwnParts();
  static bool HasSharers();

  // Puts a block into a part of the thread and returns the one that goes: null, or `block` itself
  // if the class has no place.
  TCMALLOC_ALWAYS_INLINE void* Exchange(uint8_t number, void* block, uint8_t size_class) {
    const size_t count = counts_[size_class];
    if (TCMALLOC_UNLIKELY(count == 0)) return block;
    Part& part = parts_[number - 1];
    std::atomic<void*>* places = part.places + firsts_[size_class];
    // Other threads of the part may do the same; then a number comes twice, which does no harm.
    const uint64_t random = NextDraw(part.random.load(std::memory_order_relaxed));
    part.random.store(random, std::memory_order_relaxed);
    const auto following = static_cast<uint16_t>((random >> 32) * count >> 32);
    std::atomic<void*>& place = places[part.next[size_class].load(std::memory_order_relaxed)];
    part.next[size_class].store(following, std::memory_order_relaxed);
    Prefetch(places[following].load(std::memory_order_relaxed), size_class);
    if (TCMALLOC_UNLIKELY(number > kOwnParts)) {
      // Acquire-release pairs with Exchange of another block: it is filled when it comes out.
      return place.exchange(block, std::memory_order_acq_rel);
    }
    void* leaving = place.load(std::memory_order_relaxed);
    // Release pairs with the acquire in LookAt.
    place.store(block, std::memory_order_release);
    return leaving;
  }

  // Takes all blocks out of a part, or of all that threads share, and calls f(block) for each.
  template <typename F>
  void TakeEach(uint8_t number, F f) {
    for (size_t i = 0; i < places_; ++i) {
      std::atomic<void*>& place = parts_[number - 1].places[i];
      if (place.load(std::memory_order_relaxed) == nullptr) continue;
      // Acquire-release pairs with Exchange.
      if (void* block = place.exchange(nullptr, std::memory_order_acq_rel)) f(block);
    }
  }
  template <typename F>
  void TakeEachShared(F f) {
    if (!HasSharers()) return;
    for (uint8_t number = kOwnParts + 1; number <= kParts; ++number) TakeEach(number, f);
  }

  // Calls f(block, is_there) for the blocks that other threads than that of part `own` have to
  // themselves, which they keep. `is_there()` tells that the block has not left meanwhile.
  template <typename F>
  void LookAtOthers(uint8_t own, F f) const {
    for (size_t p = 0; p < OwnParts(); ++p) {
      if (p + 1 == own) continue;
      for (size_t i = 0; i < places_; ++i) LookAt(parts_[p].places[i], f);
    }
  }
  // Does this for one place of another thread.
  template <typename F>
  static void LookAt(const std::atomic<void*>& place, F f) {
    // Acquire pairs with the release in Exchange: the block is filled.
    void* block = place.load(std::memory_order_acquire);
    if (block == nullptr) return;
    f(block, [&] {
      // Acquire pairs with the release in Exchange, and keeps what was read before in front.
      std::atomic_thread_fence(std::memory_order_acquire);
      return place.load(std::memory_order_relaxed) == block;
    });
  }

  // Returns the number after `random`, whose high bits are as good as any here.
  static uint64_t NextDraw(uint64_t random) { return random * kStep + 1; }

 private:
  struct alignas(64) Part {
    std::atomic<uint64_t> random{0};
    std::atomic<void*>* places = nullptr;
    // By class, the place for the next block.
    std::atomic<uint16_t> next[kSizeClassCount] = {};
  };

  // Of a linear congruential generator.
  static constexpr uint64_t kStep = 0x5851'F42D'4C95'7F2D;
  static constexpr size_t kLineBytes = 64;
  static constexpr size_t kMostPrefetched = 512;

  TCMALLOC_ALWAYS_INLINE static void Prefetch(const void* block, uint8_t size_class) {
    const size_t bytes = std::min<size_t>(kSizeClasses[size_class].size, kMostPrefetched);
    const auto* start = static_cast<const char*>(block);
    for (size_t line = 0; line < bytes; line += kLineBytes) __builtin_prefetch(start + line);
  }
  uint16_t counts_[kSizeClassCount] = {};
  uint16_t firsts_[kSizeClassCount] = {};
  size_t places_ = 0;
  Part parts_[kParts];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_QUARANTINE_H_
