// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A clock that tests set.

#ifndef TCMALLOC_TESTS_FAKES_SET_CLOCK_H_
#define TCMALLOC_TESTS_FAKES_SET_CLOCK_H_

#include <time.h>

#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc::testing {

// Stands in for the clocks of the system while it exists, and goes on by what tests let pass.
class SetClock {
 public:
  SetClock() {
    now_ns = 1'000'000'000;
    system_calls.clock_gettime = [](clockid_t, timespec* time) {
      *time = {.tv_sec = now_ns / 1'000'000'000, .tv_nsec = now_ns % 1'000'000'000};
      return 0;
    };
  }
  ~SetClock() { system_calls.clock_gettime = saved_; }
  SetClock(const SetClock&) = delete;
  SetClock& operator=(const SetClock&) = delete;

  static void Pass(int64_t ns) { now_ns += ns; }

 private:
  static inline int64_t now_ns = 0;
  decltype(system_calls.clock_gettime) saved_ = system_calls.clock_gettime;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_SET_CLOCK_H_
