// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of the allocator that are interrupted at every instruction.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_OPERATIONS_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_OPERATIONS_H_

#include <cstddef>
#include <span>

namespace tcmalloc::testing {

// `prepare` runs undisturbed, before each run of `run`, whose calls are stepped. Both leave nothing
// in use.
struct InterruptedOperation {
  const char* name;
  void (*prepare)();
  void (*run)();
  // True if `prepare` leaves no objects at hand.
  bool starts_empty = false;
};

// A call or two that find what they want at hand: each boundary is worth a run of its own.
std::span<const InterruptedOperation> ShortOperations();
// Many calls, with lists and slabs that are empty, grow, overflow and are flushed.
std::span<const InterruptedOperation> LongOperations();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_OPERATIONS_H_
