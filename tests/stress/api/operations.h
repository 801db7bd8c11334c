// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_STRESS_API_OPERATIONS_H_
#define TCMALLOC_TESTS_STRESS_API_OPERATIONS_H_

#include <cstddef>
#include <span>

#include "stress/api/block.h"

namespace tcmalloc::testing {

// One way to obtain a block.
struct Allocation {
  const char* name;
  Family family;
  // Honours the requested alignment; the others promise only what malloc does.
  bool aligned;
  bool zeroed;
  void* (*call)(std::size_t size, std::size_t alignment);
  // False where the allocator under test lacks the function.
  bool (*available)();
};

// One way to give a block of `family` back.
struct Deallocation {
  const char* name;
  Family family;
  void (*call)(const Block& block);
  bool (*available)();
};

// The operations that the allocator under test has.
std::span<const Allocation> Allocations();
std::span<const Deallocation> Deallocations(Family family);

// True where the block may be given to realloc.
constexpr bool IsReallocatable(Family family) {
  return family == Family::kMalloc || family == Family::kAligned;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_API_OPERATIONS_H_
