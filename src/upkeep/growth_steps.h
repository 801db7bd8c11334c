// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When caches make way for a heap that grows. docs/decisions/0131-idle-classes-make-way.md.

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
class GrowthSteps {
 public:
  static constexpr Length kLeastStep = Length::FromBytesCeil(size_t{256} << 10);
  static constexpr uintptr_t kStepShare = 32;

  // Returns how much the heap grows beyond `committed` until the next step.
  static constexpr Length StepAfter(Length committed) {
    return std::max(kLeastStep, Length(committed.pages() / kStepShare));
  }

  constexpr GrowthSteps() = default;
  GrowthSteps(const GrowthSteps&) = delete;
  GrowthSteps& operator=(const GrowthSteps&) = delete;

  // Returns true if a thread that fetched memory should take a step. One load.
  bool IsDue(Length committed) const {
    return committed.pages() > next_pages_.load(std::memory_order_relaxed);
  }
  // Takes the step. Returns false if it is not due any more, because another thread took it.
  bool Take(Length committed) {
    uintptr_t next = next_pages_.load(std::memory_order_relaxed);
    const uintptr_t following = (committed + StepAfter(committed)).pages();
    return committed.pages() > next &&
           next_pages_.compare_exchange_strong(next, following, std::memory_order_relaxed);
  }

 private:
  std::atomic<uintptr_t> next_pages_{kLeastStep.pages()};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_GROWTH_STEPS_H_
