// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Work that waits for a thread that has left the slow path.

#ifndef TCMALLOC_HEAP_ERRANDS_H_
#define TCMALLOC_HEAP_ERRANDS_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// Each thread that leaves the slow path looks here, where one load tells it that there is nothing,
// and otherwise runs what it finds: see SlowPath. Errands may allocate, and call the program.
//
// Thread safe, without a lock; async-signal-safe.
class Errands {
 public:
  constexpr Errands() = default;
  Errands(const Errands&) = delete;
  Errands& operator=(const Errands&) = delete;

  bool any() const { return word_.load(std::memory_order_relaxed) != 0; }

  // Calls of hooks that wait. Whoever adds one runs it, when it has left the slow path.
  void AddCall() { word_.fetch_add(kCall, std::memory_order_relaxed); }
  void RemoveCall() { word_.fetch_sub(kCall, std::memory_order_relaxed); }

  // Called in the child of fork, where no other thread is left that would run its calls.
  void ResetAfterFork(bool background_is_lost) {
    forks_.fetch_add(1, std::memory_order_relaxed);
    word_.store(background_is_lost ? kBackground : 0, std::memory_order_relaxed);
  }
  // Returns a number that is another one in a child of fork.
  uint32_t forks() const { return forks_.load(std::memory_order_relaxed); }

  // Returns true if the background thread is to be started again, and forgets that.
  bool TakeBackground() {
    return (word_.load(std::memory_order_relaxed) & kBackground) != 0 &&
           (word_.fetch_and(~kBackground, std::memory_order_relaxed) & kBackground) != 0;
  }

 private:
  static constexpr uint32_t kBackground = 1;
  static constexpr uint32_t kCall = 2;

  std::atomic<uint32_t> word_{0};
  std::atomic<uint32_t> forks_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_ERRANDS_H_
