// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs code of this process one instruction at a time, and a signal handler between two of them.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_STEPPER_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_STEPPER_H_

#include <array>
#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// A boundary is a point before an instruction of the allocator's library that is about to run, and
// is counted from 0 over everything that is stepped.
//
// A single-stepped thread completes no restartable section, because each step is a signal, and the
// kernel aborts a section for that. Here the thread is put back to where it was, so that it goes
// through its sections as if nobody watched. Only at the boundaries where the handler runs it stays
// aborted, as the kernel would have it after one signal at that point. It then completes the
// section before the handler runs again, for some sections are longer than the way between two
// boundaries, and would be aborted over and over. Where another thread has run meanwhile, the
// section is aborted, as it is without a stepper. The process must be bound to one CPU.
class Stepper {
 public:
  // Where the handler runs: at `first`, and then at every `stride`-th boundary, until it has run
  // `most` times; only at `first` if `stride` is 0. Nothing is stepped afterwards.
  struct Boundaries {
    uint64_t first = 0;
    uint64_t stride = 0;
    uint64_t most = UINT64_MAX;
    // Whether this thread is the only one, so that breakpoints are its own.
    bool alone = true;
  };

  // Boundaries whose addresses are kept.
  static constexpr size_t kLongestPath = 4096;

  // The general registers but the stack pointer.
  using Registers = std::array<uintptr_t, 15>;

  // False where there is no such library in the process, or no way to step.
  static bool Initialize(const char* library);

  // Calls handler() at these boundaries of everything that is stepped from now on.
  static void Arm(const Boundaries& boundaries, void (*handler)());
  static void Disarm();

  // All code between On and Off is stepped while the stepper is armed.
  static void On();
  static void Off();

  // Since Arm; of a run whose handler ran as often as it may, until then.
  static uint64_t boundaries();
  static uint64_t handled();
  // Of one of the first kLongestPath boundaries.
  static uintptr_t address(size_t boundary);
  // Where the handler ran last, and the same as an offset in the library.
  static uintptr_t last_address();
  static uintptr_t last_offset();
  // Registers of the interrupted code then.
  static const Registers& last_registers();
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_STEPPER_H_
