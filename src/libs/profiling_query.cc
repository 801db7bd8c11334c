// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A function of <gperftools/profiler.h> that gperftools' libtcmalloc has as well as its
// libprofiler, so that programs which are linked with the former alone may call it.

#include <dlfcn.h>

#include "base/attributes.h"

extern "C" {

// Asks the CPU profiler, if a library behind this one has it.
TCMALLOC_EXPORT __attribute__((weak)) int ProfilingIsEnabledForAllThreads() {
  using Query = int (*)();
  const auto next = reinterpret_cast<Query>(::dlsym(RTLD_NEXT, "ProfilingIsEnabledForAllThreads"));
  return next != nullptr ? next() : 0;
}

}  // extern "C"
