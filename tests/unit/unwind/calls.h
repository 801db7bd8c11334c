// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of all kinds whose return addresses are noted by the functions themselves.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_CALLS_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_CALLS_H_

#include <cstddef>
#include <vector>

namespace tcmalloc::testing {

// The return addresses of the functions that run, the innermost last.
inline thread_local std::vector<void*> running;

class Noted {
 public:
  explicit Noted(void* return_address) {
    running.push_back(__builtin_extract_return_addr(return_address));
  }
  ~Noted() { running.pop_back(); }
};

// Notes the return address of the function that this stands in.
#define TCM_NOTE_CALL() const ::tcmalloc::testing::Noted noted(__builtin_return_address(0))

using Innermost = void (*)();

// Functions compiled with one set of options. Each calls `innermost` in the end.
struct Calls {
  const char* options;
  void (*plain)(Innermost innermost);
  void (*recursive)(Innermost innermost, int depth);
  void (*variable_array)(Innermost innermost, size_t bytes);
  void (*aligned)(Innermost innermost);
  void (*aligned_variable_array)(Innermost innermost, size_t bytes);
  void (*busy)(Innermost innermost);          // uses many registers
  void (*through_libc)(Innermost innermost);  // qsort calls back
  void (*tail_call)(Innermost innermost);
  void (*in_destructor)(Innermost innermost);  // while an exception is in flight
  void (*in_catch)(Innermost innermost);
  void (*many_arguments)(Innermost innermost);
};

extern const Calls* const kAllCalls[];
extern const size_t kAllCallsCount;

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_CALLS_H_
