// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Large blocks of four sizes by turns, while free memory goes back by time. What goes back leaves
// pieces, none of which is long enough for the next block; the heap may not grow for that.

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stress/memory/figures.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;
constexpr size_t kUnit = 8 * kMiB + 48;
constexpr int kRounds = 80;
// Of four units, and 64 MiB where the heap has no need to be careful.
constexpr size_t kMostMapped = 2 * (4 * kUnit) + 64 * kMiB + 8 * kUnit;

char* Written(size_t units) {
  auto* block = static_cast<char*>(std::malloc(units * kUnit));
  PROGRAM_CHECK(block != nullptr);
  std::memset(block, 1, units * kUnit);
  return block;
}

void Round() {
  std::free(Written(4));
  char* second = Written(2);
  char* third = Written(1);
  std::free(second);
  char* fourth = Written(3);
  std::free(third);
  std::free(fourth);
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  using namespace tcmalloc::testing;
  for (int round = 0; round < kRounds; ++round) Round();
  const size_t mapped = Figure("mapped_bytes");
  std::printf("%zu MiB mapped, at most %zu allowed\n", mapped / kMiB, kMostMapped / kMiB);
  PROGRAM_CHECK(mapped <= kMostMapped);
  return 0;
}
