// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_STOPWATCH_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_STOPWATCH_H_

#include <time.h>

namespace tcmalloc::bench {

// Wall time and the CPU time of all threads of the process, in seconds.
struct Elapsed {
  double seconds = 0;
  double cpu_seconds = 0;

  Elapsed& operator+=(const Elapsed& other) {
    seconds += other.seconds;
    cpu_seconds += other.cpu_seconds;
    return *this;
  }
};

class Stopwatch {
 public:
  Elapsed Read() const {
    return {Now(CLOCK_MONOTONIC) - start_.seconds,
            Now(CLOCK_PROCESS_CPUTIME_ID) - start_.cpu_seconds};
  }

 private:
  static double Now(clockid_t clock) {
    timespec now;
    clock_gettime(clock, &now);
    return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
  }

  Elapsed start_{Now(CLOCK_MONOTONIC), Now(CLOCK_PROCESS_CPUTIME_ID)};
};

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_STOPWATCH_H_
