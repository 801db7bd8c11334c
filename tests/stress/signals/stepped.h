// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of the allocator that are stepped, with blocks in the ledger.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_STEPPED_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_STEPPED_H_

#include <cstddef>
#include <cstdlib>

#include "stress/signals/ledger.h"
#include "stress/signals/stepper.h"

namespace tcmalloc::testing {

template <typename F>
auto Stepped(F f) {
  Stepper::On();
  auto result = f();
  Stepper::Off();
  return result;
}

inline void* AllocateStepped(size_t size) {
  return ledger.Add(Stepped([=] { return std::malloc(size); }), size);
}
inline void FreeStepped(void* block) {
  ledger.Remove(block);
  Stepped([=] {
    std::free(block);
    return 0;
  });
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_STEPPED_H_
