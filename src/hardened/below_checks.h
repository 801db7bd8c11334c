// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_HARDENED_BELOW_CHECKS_H_
#define TCMALLOC_HARDENED_BELOW_CHECKS_H_

#include <atomic>
#include <cstdint>

#include "base/attributes.h"
#include "hardened/quarantine.h"
#include "thread/thread_state.h"

namespace tcmalloc {

// The scope in which a thread uses its part of the quarantine, or the allocator below; see
// ThreadState. Gives it a part if it has none.
class BelowChecks {
 public:
  BelowChecks() : BelowChecks(PartOfThread()) {}
  // Works as the other one without giving it a part. Requires that `part` is what the thread has.
  TCMALLOC_ALWAYS_INLINE explicit BelowChecks(uint8_t part) : part_(part) {
    thread_state.quarantine_part = ThreadState::kBelowChecks;
    // Pairs with Take and GiveBack in a signal handler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
  }
  TCMALLOC_ALWAYS_INLINE ~BelowChecks() {
    // Pairs with Take and GiveBack in a signal handler.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    thread_state.quarantine_part = part_;
  }
  BelowChecks(const BelowChecks&) = delete;
  BelowChecks& operator=(const BelowChecks&) = delete;

  uint8_t part() const { return part_; }

 private:
  static uint8_t PartOfThread() {
    const uint8_t part = thread_state.quarantine_part;
    return TCMALLOC_LIKELY(ThreadParts::IsPart(part)) ? part : FindPart();
  }
  // Returns the part of a thread that has none to itself, with that scope begun.
  static uint8_t FindPart();

  const uint8_t part_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_BELOW_CHECKS_H_
