// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Steps by which the heap grows.

#ifndef TCMALLOC_UPKEEP_GROWTH_STEPS_H_
#define TCMALLOC_UPKEEP_GROWTH_STEPS_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc {

// Divides the growth of the heap beyond the most that it ever held into steps. A heap in a steady
// state takes none. Thread safe.
template <size_t kLeastBytes>
class StepsOfGrowth {
 public:
  static constexpr Length kLeastStep = Length::FromBytesCeil(kLeastBytes);
  static constexpr uintptr_t kStepShare = 32;

  // Returns how much the heap grows beyond `committed` until the next step.
  static constexpr Length StepAfter(Length committed) {
    return std::max(kLeastStep, Length(committed.pages() / kStepShare));
  }

  constexpr StepsOfGrowth() = default;
  StepsOfGrowth(const StepsOfGrowth&) = delete;
  StepsOfGrowth& operator=(const StepsOfGrowth&) = delete;

  // Returns true if a thread that fetched memory should take a step. One load.
  bool IsDue(Length committed) const {
    return committed.pages() > next_pages_.load(std::memory_order_relaxed);
  }
  // Takes the step. Returns false if it is not due any more, because another thread took it.
  bool Take(Length committed) {
    uintptr_t next = next_pages_.load(std::memory_order_relaxed);
    return committed.pages() > next && next_pages_.compare_exchange_strong(
                                           next, EndAfter(committed), std::memory_order_relaxed);
  }
  // Lets the next step begin at `committed`, whether one is due or not.
  void BeginAt(Length committed) {
    next_pages_.store(EndAfter(committed), std::memory_order_relaxed);
  }

 private:
  static constexpr uintptr_t EndAfter(Length committed) {
    return (committed + StepAfter(committed)).pages();
  }

  std::atomic<uintptr_t> next_pages_{kLeastStep.pages()};
};

// At these, caches make way for a heap that grows. docs/decisions/0131-idle-classes-make-way.md.
using GrowthSteps = StepsOfGrowth<size_t{256} << 10>;

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_GROWTH_STEPS_H_
