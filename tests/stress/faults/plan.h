// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Which faults the sweep tries.

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_PLAN_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_PLAN_H_

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace tcmalloc::testing {

enum class Program : uint8_t { kOrdinary, kAllocatesInResolver };
// When the faults begin: with the first system call, or in main.
enum class Start : uint8_t { kProcess, kMain };
// kFewK is for calls that a process makes at its start or once.
enum class Density : uint8_t { kEveryK, kSomeK, kFewK };

// One kind of call, made to fail in one setting.
struct Kind {
  const char* call;  // as in the text of a plan
  Density density;   // of the sweep that each test run does
  Start start = Start::kProcess;
  Program program = Program::kOrdinary;
  const char* companion = "";  // a plan that brings the calls about
  const char* variable = "";   // NAME=value for the environment, to the same end
  bool memfs = false;          // the heap lies in a file of a tmpfs
  bool small_steps = false;    // many requests reach the system
  bool quiet_fork = false;     // the fork handlers may be missing
  bool exact_space = false;    // the faults leave unmapping alone
  bool reached = true;         // the allocator makes such calls
};

std::span<const Kind> Kinds();

// One process of the sweep.
struct Run {
  const Kind* kind = nullptr;
  std::string plans;
  bool every = false;  // each k-th call fails
};

// kSparse takes kSomeK for kEveryK.
enum class Extent : uint8_t { kSparse, kUsual, kFull };
std::vector<Run> PlanSweep(Extent extent);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_PLAN_H_
