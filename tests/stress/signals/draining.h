// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of the allocator for size classes that drain, or are about to.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_DRAINING_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_DRAINING_H_

#include <cstddef>
#include <span>

#include "stress/signals/operations.h"

namespace tcmalloc::testing {

// Learns by trying how many calls make each class drain. False if one does not drain. Requires a
// thread with lists of its own.
bool LearnToDrain();

// The bytes of the blocks that an operation leaves in use, unlike others.
size_t DrainingBytes();
// Frees these blocks.
void FreeDraining();

// Require LearnToDrain.
std::span<const InterruptedOperation> DrainingOperations();
std::span<const InterruptedOperation> LongDrainingOperations();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_DRAINING_H_
