// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Compiled once for each set of options, which TCM_CALLS_NAME and TCM_CALLS_OPTIONS name.

#include "unit/unwind/calls.h"

#include <alloca.h>

#include <cstdlib>
#include <cstring>

namespace tcmalloc::testing {
namespace {

#define TCM_FUNCTION __attribute__((noinline, noclone))
#if defined(__clang__)
#undef TCM_FUNCTION
#define TCM_FUNCTION __attribute__((noinline))
#endif

template <typename T>
void Use(const T& value) {
  asm volatile("" : : "r"(&value) : "memory");
}

TCM_FUNCTION void Plain(Innermost innermost) {
  TCM_NOTE_CALL();
  innermost();
  asm volatile("");
}

TCM_FUNCTION void Recursive(Innermost innermost, int depth) {
  TCM_NOTE_CALL();
  if (depth > 0) {
    Recursive(innermost, depth - 1);
  } else {
    innermost();
  }
  asm volatile("");
}

TCM_FUNCTION void VariableArray(Innermost innermost, size_t bytes) {
  TCM_NOTE_CALL();
  char* array = static_cast<char*>(alloca(bytes));
  std::memset(array, 1, bytes);
  Use(array);
  Plain(innermost);
  Use(array);
}

struct alignas(128) Aligned {
  char bytes[128];
};

TCM_FUNCTION void CallAligned(Innermost innermost) {
  TCM_NOTE_CALL();
  Aligned aligned = {};
  Use(aligned);
  Plain(innermost);
  Use(aligned);
}

TCM_FUNCTION void AlignedVariableArray(Innermost innermost, size_t bytes) {
  TCM_NOTE_CALL();
  Aligned aligned = {};
  Use(aligned);
  char* array = static_cast<char*>(alloca(bytes));
  std::memset(array, 1, bytes);
  Use(array);
  CallAligned(innermost);
  Use(array);
  Use(aligned);
}

TCM_FUNCTION long Opaque(long value) {
  asm volatile("" : "+r"(value));
  return value;
}

TCM_FUNCTION void Busy(Innermost innermost) {
  TCM_NOTE_CALL();
  const long a = Opaque(1);
  const long b = Opaque(2);
  const long c = Opaque(3);
  const long d = Opaque(4);
  const long e = Opaque(5);
  const long f = Opaque(6);
  const long g = Opaque(7);
  AlignedVariableArray(innermost, 100);
  Plain(innermost);
  Use(a * b + c * d + e * f + g);
}

thread_local Innermost called_back;

TCM_FUNCTION int Compare(const void* a, const void* b) {
  TCM_NOTE_CALL();
  Innermost innermost = called_back;
  called_back = nullptr;
  if (innermost != nullptr) Busy(innermost);
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}

TCM_FUNCTION void ThroughLibc(Innermost innermost) {
  TCM_NOTE_CALL();
  int numbers[] = {3, 1, 2};
  called_back = innermost;
  std::qsort(numbers, 3, sizeof(numbers[0]), Compare);
  Use(numbers);
}

// Leaves no frame where the compiler replaces the call by a jump.
TCM_FUNCTION void TailCall(Innermost innermost) { Plain(innermost); }

class Calling {
 public:
  explicit Calling(Innermost innermost) : innermost_(innermost) {}
  TCM_FUNCTION ~Calling() {
    TCM_NOTE_CALL();
    Busy(innermost_);
  }

 private:
  Innermost innermost_;
};

TCM_FUNCTION void Throw() {
  TCM_NOTE_CALL();
  throw 1;
}

TCM_FUNCTION void ThrowPastDestructor(Innermost innermost) {
  TCM_NOTE_CALL();
  const Calling calling(innermost);
  Throw();
}

TCM_FUNCTION void InDestructor(Innermost innermost) {
  TCM_NOTE_CALL();
  try {
    ThrowPastDestructor(innermost);
  } catch (int) {
    Opaque(1);
  }
}

TCM_FUNCTION void InCatch(Innermost innermost) {
  TCM_NOTE_CALL();
  try {
    Throw();
  } catch (int) {
    Busy(innermost);
  }
}

// Arguments are pushed where code is compiled for size.
TCM_FUNCTION void TakeMany(int a, int b, int c, int d, int e, int f, int g, int h, int i, int j,
                           Innermost innermost) {
  TCM_NOTE_CALL();
  Plain(innermost);
  Use(a + b + c + d + e + f + g + h + i + j);
}

TCM_FUNCTION void ManyArguments(Innermost innermost) {
  TCM_NOTE_CALL();
  TakeMany(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, innermost);
  asm volatile("");
}

}  // namespace

extern const Calls TCM_CALLS_NAME;
const Calls TCM_CALLS_NAME = {
    .options = TCM_CALLS_OPTIONS,
    .plain = Plain,
    .recursive = Recursive,
    .variable_array = VariableArray,
    .aligned = CallAligned,
    .aligned_variable_array = AlignedVariableArray,
    .busy = Busy,
    .through_libc = ThroughLibc,
    .tail_call = TailCall,
    .in_destructor = InDestructor,
    .in_catch = InCatch,
    .many_arguments = ManyArguments,
};

}  // namespace tcmalloc::testing
