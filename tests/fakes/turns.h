// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Two threads that take turns.

#ifndef TCMALLOC_TESTS_FAKES_TURNS_H_
#define TCMALLOC_TESTS_FAKES_TURNS_H_

#include <barrier>
#include <functional>
#include <thread>

namespace tcmalloc::testing {

// Calls step(0) in one thread, then step(1) in another, and so on, `rounds` times. Both threads
// live until the end.
inline void TakeTurns(int rounds, const std::function<void(int)>& step) {
  std::barrier barrier(2);
  const auto run = [&](int own) {
    for (int round = 0; round < rounds; ++round) {
      for (int turn = 0; turn < 2; ++turn) {
        if (turn == own) step(own);
        barrier.arrive_and_wait();
      }
    }
  };
  std::thread first(run, 0);
  std::thread second(run, 1);
  first.join();
  second.join();
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_TURNS_H_
