// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Bounds the time that goes into taking and giving back access to pages.

#ifndef TCMALLOC_HARDENED_GUARD_BUDGET_H_
#define TCMALLOC_HARDENED_GUARD_BUDGET_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Grants work on pages as long as it costs no more than a share of the time that has passed. A
// program that frees few large blocks gets all that it asks for, from its start on; one that does
// little else gets a part. Lock-free: of two threads that ask at once, both may get what is there
// for one.
class GuardBudget {
 public:
  // The cost of the work: calls of the kernel, and the faults of pages that were lost, as measured
  // on a busy virtual machine.
  static constexpr int64_t kCallNanoseconds = 2000;
  static constexpr int64_t kPageNanoseconds = 1000;
  // The part of the time that may go into it, the most that can be saved up, and what is there at
  // the start.
  static constexpr int64_t kShare = 128;
  static constexpr int64_t kMost = 20'000'000;
  static constexpr int64_t kFirst = 4'000'000;

  constexpr GuardBudget() = default;
  GuardBudget(const GuardBudget&) = delete;
  GuardBudget& operator=(const GuardBudget&) = delete;

  static constexpr int64_t CostOf(int calls, size_t lost_pages) {
    return calls * kCallNanoseconds + static_cast<int64_t>(lost_pages) * kPageNanoseconds;
  }

  // Takes `cost` if there is as much. `now` is in nanoseconds.
  bool Take(int64_t cost, int64_t now) {
    const int64_t before = seen_.load(std::memory_order_relaxed);
    int64_t left = left_.load(std::memory_order_relaxed);
    if (before != 0 && now > before) left = std::min(left + (now - before) / kShare, kMost);
    const bool is_enough = cost <= left;
    seen_.store(now, std::memory_order_relaxed);
    left_.store(is_enough ? left - cost : left, std::memory_order_relaxed);
    return is_enough;
  }

 private:
  std::atomic<int64_t> seen_{0};
  std::atomic<int64_t> left_{kFirst};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_GUARD_BUDGET_H_
