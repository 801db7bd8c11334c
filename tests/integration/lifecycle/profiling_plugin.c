// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that has the CPU profiler linked into it, uses it when it is loaded, and can be
// unloaded.

#include <gperftools/profiler.h>

__attribute__((constructor)) static void Profile(void) {
  if (ProfilerStart("/dev/null") != 0) ProfilerStop();
}
