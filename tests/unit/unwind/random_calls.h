// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_RANDOM_CALLS_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_RANDOM_CALLS_H_

#include <cstddef>
#include <random>

#include "unit/unwind/calls.h"
#include "unit/unwind/compared_walks.h"

namespace tcmalloc::testing {

// Makes calls of all kinds at random, and captures on the way down and up.
class RandomCalls {
 public:
  RandomCalls(unsigned seed, int captures) : random_(seed), left_(captures) {}

  void Run() {
    current = this;
    while (left_ > 0) Visit();
    current = nullptr;
  }

 private:
  static constexpr int kDeepest = 60;

  static void VisitCurrent() { current->Visit(); }

  __attribute__((noinline)) void Visit() {
    ++depth_;
    for (int calls = Below(4); calls >= 0 && left_ > 0; --calls) {
      if (Below(2) == 0) Capture();
      if (depth_ < kDeepest) CallOne();
    }
    --depth_;
  }

  void Capture() {
    --left_;
    const ComparedWalks::Request request = {
        .limit = Below(3) == 0 ? 1 + Below(30) : ComparedWalks::kMost,
        .skip = Below(3) == 0 ? Below(8) : 0};
    if (!ComparedWalks::Compare(request)) left_ = 0;
  }

  void CallOne() {
    const Calls& calls = *kAllCalls[Below(static_cast<int>(kAllCallsCount))];
    switch (Below(9)) {
      case 0:
        calls.plain(VisitCurrent);
        break;
      case 1:
        calls.recursive(VisitCurrent, Below(20));
        break;
      case 2:
        calls.variable_array(VisitCurrent, static_cast<size_t>(Below(4)) * 16 + 1);
        break;
      case 3:
        calls.aligned(VisitCurrent);
        break;
      case 4:
        calls.aligned_variable_array(VisitCurrent, static_cast<size_t>(Below(4)) * 16 + 1);
        break;
      case 5:
        calls.busy(VisitCurrent);
        break;
      case 6:
        calls.through_libc(VisitCurrent);
        break;
      case 7:
        calls.tail_call(VisitCurrent);
        break;
      default:
        calls.many_arguments(VisitCurrent);
        break;
    }
  }

  int Below(int limit) { return static_cast<int>(random_() % static_cast<unsigned>(limit)); }

  static inline thread_local RandomCalls* current = nullptr;
  std::minstd_rand random_;
  int left_;
  int depth_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_RANDOM_CALLS_H_
