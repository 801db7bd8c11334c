// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_FAKES_ONE_CPU_H_
#define TCMALLOC_TESTS_FAKES_ONE_CPU_H_

#include <sched.h>

namespace tcmalloc::testing {

// Lets the calling thread run on one CPU alone. Return false if the kernel refuses.
inline bool RunOnCpu(int cpu) {
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(cpu, &one);
  return ::sched_setaffinity(0, sizeof(one), &one) == 0;
}
inline bool StayOnThisCpu() {
  const int cpu = ::sched_getcpu();
  return cpu >= 0 && RunOnCpu(cpu);
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_ONE_CPU_H_
