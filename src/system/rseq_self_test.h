// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tests that the kernel really aborts sections.

#ifndef TCMALLOC_SYSTEM_RSEQ_SELF_TEST_H_
#define TCMALLOC_SYSTEM_RSEQ_SELF_TEST_H_

#include <cstdint>

namespace tcmalloc {

enum class RseqTestOutcome : uint8_t {
  kPassed,
  kRefused,  // the kernel registers no area
  kFailed,   // no abort, or the test could not run
};

struct RseqTestResult {
  RseqTestOutcome outcome = RseqTestOutcome::kFailed;
  int error = 0;  // why it was refused
  // The words that the kernel wrote into the area; kept where the test passed.
  uint32_t cpu_id = UINT32_MAX;
  uint32_t mm_cid = UINT32_MAX;
};

// Runs a section that faults, in a child that shares this process's memory but has its own signal
// handlers and its own area, and examines where the fault's signal finds it. The running thread is
// suspended until the child has ended. Its signals are blocked meanwhile, so that none meant for
// the program's process group makes the child run the program's handlers. May change errno.
RseqTestResult TestRseq();

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RSEQ_SELF_TEST_H_
