// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Places where blocks wait, and leave in random order.

#ifndef TCMALLOC_HARDENED_QUARANTINE_H_
#define TCMALLOC_HARDENED_QUARANTINE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "pages/metadata_arena.h"
#include "size_class/size_classes.h"
#include "thread/current_thread.h"

namespace tcmalloc {

// For each size class a number of places, each empty or with a block. A block that comes takes a
// place at random, and the one that was there goes. There are kParts sets of places, and a thread
// uses one of them. Lock-free, so that a signal handler or fork may come at any moment.
class Quarantine {
 public:
  static constexpr size_t kParts = 8;
  static constexpr size_t kMostPlaces = 128;  // of a class in a part

  constexpr Quarantine() = default;
  Quarantine(const Quarantine&) = delete;
  Quarantine& operator=(const Quarantine&) = delete;

  // Makes places for at most `bytes_per_class` bytes of each class in a part, or for one block.
  // Classes of more than `largest` bytes get none. Called once, before Exchange. Returns false if
  // there is no memory.
  [[nodiscard]] bool Initialize(MetadataArena& arena, size_t bytes_per_class, size_t largest,
                                uint64_t seed);

  // Puts a block in and returns the one that goes: null, or `block` itself if the class has no
  // place.
  TCMALLOC_ALWAYS_INLINE void* Exchange(void* block, uint8_t size_class) {
    Part& part = OwnPart();
    const size_t count = counts_[size_class];
    if (TCMALLOC_UNLIKELY(count == 0)) return block;
    // Other threads of the part may do the same; then a number comes twice, which does no harm.
    const uint64_t random = part.random.load(std::memory_order_relaxed) * kStep + 1;
    part.random.store(random, std::memory_order_relaxed);
    const size_t place = firsts_[size_class] + ((random >> 32) * count >> 32);
    // Acquire-release pairs with Exchange of another block: it is filled when it comes out.
    return part.places[place].exchange(block, std::memory_order_acq_rel);
  }

  // Takes all blocks out, and calls f(block) for each.
  template <typename F>
  void TakeEach(F f) {
    for (const Part& part : parts_) {
      for (size_t i = 0; i < places_; ++i) {
        if (part.places[i].load(std::memory_order_relaxed) == nullptr) continue;
        // Acquire-release pairs with Exchange.
        if (void* block = part.places[i].exchange(nullptr, std::memory_order_acq_rel)) f(block);
      }
    }
  }

 private:
  struct alignas(64) Part {
    std::atomic<uint64_t> random{0};
    std::atomic<void*>* places = nullptr;
  };

  // Of a linear congruential generator, whose high bits are as good as any here.
  static constexpr uint64_t kStep = 0x5851'F42D'4C95'7F2D;

  // By the address of the thread's own variable: those of neighbouring threads are many pages
  // apart.
  TCMALLOC_ALWAYS_INLINE Part& OwnPart() {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    static_assert(kParts == size_t{1} << 3);
    return parts_[(reinterpret_cast<uintptr_t>(&current_thread) >> 12) * kGolden >> 61];
  }

  uint16_t counts_[kSizeClassCount] = {};
  uint16_t firsts_[kSizeClassCount] = {};
  size_t places_ = 0;
  Part parts_[kParts];
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_QUARANTINE_H_
