// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions that gperftools exports although none of its headers declares them. They are here so
// that a program linked with gperftools finds every function to which it may refer.

#include <cstdlib>
#include <string_view>

#include "base/attributes.h"

extern "C" {

// Returns the variable's value or null. Allocates nothing.
TCMALLOC_EXPORT const char* TCMallocGetenvSafe(const char* name) { return getenv(name); }

// Returns 1 if RUNNING_ON_VALGRIND is set in the environment, and not to 0.
TCMALLOC_EXPORT int RunningOnValgrind() {
  const char* value = getenv("RUNNING_ON_VALGRIND");
  return value != nullptr && std::string_view(value) != "0";
}

// gperftools calls it before the first allocation; its leak checker replaces it. Returns 1 if there
// is a leak checker.
TCMALLOC_EXPORT int MallocHook_InitAtFirstAllocation_HeapLeakChecker() { return 0; }

}  // extern "C"
