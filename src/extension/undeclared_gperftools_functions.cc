// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that gperftools exports although no header of it declares them. They are here so that
// whatever was linked with it finds every function that it may refer to.

#include <cstdlib>
#include <string_view>

#include "base/attributes.h"

extern "C" {

// The variable's value or null. Allocates nothing.
TCMALLOC_EXPORT const char* TCMallocGetenvSafe(const char* name) { return getenv(name); }

// Whether the environment says so: RUNNING_ON_VALGRIND is set, and not to 0.
TCMALLOC_EXPORT int RunningOnValgrind() {
  const char* value = getenv("RUNNING_ON_VALGRIND");
  return value != nullptr && std::string_view(value) != "0";
}

// gperftools calls it before the first allocation, for its leak checker to put another one in its
// place. Returns whether there is one.
TCMALLOC_EXPORT int MallocHook_InitAtFirstAllocation_HeapLeakChecker() { return 0; }

}  // extern "C"
