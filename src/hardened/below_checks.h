// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_HARDENED_BELOW_CHECKS_H_
#define TCMALLOC_HARDENED_BELOW_CHECKS_H_

#include <atomic>
#include <cstdint>

#include "hardened/quarantine.h"
#include "thread/thread_state.h"

namespace tcmalloc {

// The scope in which a thread uses its part of the quarantine, or the allocator below; see
// ThreadState. Gives it a part if it has none.
class BelowChecks {
 public:
  BelowChecks() : part_(thread_state.quarantine_part) {
    if (TCMALLOC_UNLIKELY(part_ == 0)) part_ = Quarantine::ChoosePart();
    thread_state.quarantine_part = ThreadState::kBelowChecks;
    // Pairs with the question for is_below_checks in a signal handler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  ~BelowChecks() {
    // Pairs with the question for is_below_checks in a signal handler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_state.quarantine_part = part_;
  }
  BelowChecks(const BelowChecks&) = delete;
  BelowChecks& operator=(const BelowChecks&) = delete;

  uint8_t part() const { return part_; }

 private:
  uint8_t part_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BELOW_CHECKS_H_
