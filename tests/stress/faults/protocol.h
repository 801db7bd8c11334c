// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Arguments and exit statuses that the sweep and its workload processes agree on.

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_PROTOCOL_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_PROTOCOL_H_

namespace tcmalloc::testing {

// Arguments of a workload. Plans in the environment act from the first system call on, those after
// kPlansArgument from main on.
inline constexpr char kPlansArgument[] = "--plans=";
// Forks only while no other thread runs, for the fork handlers may be missing.
inline constexpr char kQuietForkArgument[] = "--quiet-fork";
// The address space of the process must agree with the statistics.
inline constexpr char kExactSpaceArgument[] = "--exact-space";

// The heap grows by no more than each request needs.
inline constexpr char kSmallStepsArgument[] = "--small-steps";

// Exit statuses of a workload that found nothing wrong.
inline constexpr int kAbsorbedStatus = 0;
inline constexpr int kNothingInjectedStatus = 10;
inline constexpr int kOneFaultAbsorbedStatus = 11;

// Seconds after which SIGALRM ends a process, which then counts as hung.
inline constexpr unsigned kHangSeconds = 30;

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_PROTOCOL_H_
