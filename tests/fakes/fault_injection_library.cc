// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Added, with fault_injection.cc, to a library that replaces malloc: its system calls fail from the
// first one on as TCMALLOC_TEST_FAULT says, and then as the program says.

#include "base/attributes.h"
#include "fakes/fault_injection.h"
#include "system/system_calls.h"

namespace tcmalloc {

// Stands before the weak table of the real calls.
constinit SystemCalls system_calls = testing::FaultySystemCalls();

}  // namespace tcmalloc

extern "C" {

// Takes all plans back, then sets those that `plans` describes, if it is not null. 0 where the text
// is not understood.
TCMALLOC_EXPORT int tcmalloc_test_inject_faults(const char* plans) {
  tcmalloc::testing::ClearFaults();
  return plans == nullptr || tcmalloc::testing::InjectFaultsFromText(plans) ? 1 : 0;
}

// Since the last call of tcmalloc_test_inject_faults.
TCMALLOC_EXPORT unsigned long tcmalloc_test_faults_injected() {
  return tcmalloc::testing::FaultsInjected();
}
}
