// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library that has the CPU profiler linked into it, uses it when it is loaded, and can be
// unloaded.

#include <gperftools/profiler.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void Profile(void) {
  char path[] = "profiling_plugin.XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ProfilerStart(path) == 0) abort();
  ProfilerStop();
  unlink(path);
  close(file);
}
