// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In the modes that compare the alignment of a delete with that of the allocation: correct pairs
// with any alignment end no program, and a message says "none" for a delete without one.

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <new>
#include <string>

#include "conformance/child.h"

// Of the library that is preloaded.
extern "C" __attribute__((weak)) size_t nallocx(size_t size, int flags);

namespace {

constexpr int kMostLog2 = 13;
constexpr size_t kSizes[] = {0, 1, 30, 100, 5000, 300'000};

bool IsHardened() { return strcmp(getenv("TCMALLOC_MODE"), "hardened") == 0; }

// Deletes blocks with the alignment that they were allocated with.
void DeleteAligned(size_t size, std::align_val_t alignment) {
  operator delete(operator new(size, alignment), alignment);
  operator delete(operator new(size, alignment), size, alignment);
  operator delete[](operator new[](size, alignment), alignment);
  operator delete[](operator new[](size, alignment), size, alignment);
}

int CountWrongEstimates(size_t size, int log2) {
  void* block = memalign(size_t{1} << log2, size);
  const size_t usable = malloc_usable_size(block);
  free(block);
  const size_t estimate = nallocx(size, log2);
  if (estimate == usable) return 0;
  printf("nallocx(%zu, %d) is %zu, the block has %zu bytes\n", size, log2, estimate, usable);
  return 1;
}

// Returns what a process wrote to stderr that deletes an aligned block without an alignment.
std::string DeletePlainly() {
  return tcmalloc::testing::RunInChild(
             [] { operator delete(operator new(100, std::align_val_t{64})); })
      .errors;
}

}  // namespace

int main() {
  int wrong = 0;
  for (int log2 = 0; log2 <= kMostLog2; ++log2) {
    for (const size_t size : kSizes) {
      DeleteAligned(size, std::align_val_t{size_t{1} << log2});
      wrong += CountWrongEstimates(size, log2);
    }
  }
  const std::string errors = DeletePlainly();
  const char* expected = IsHardened() ? "with none, but it was allocated with 64"
                                      : "with alignment none, but the block was allocated with 64";
  if (errors.find(expected) == std::string::npos) {
    printf("unexpected: %s\n", errors.c_str());
    ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}
