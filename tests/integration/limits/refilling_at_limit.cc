// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Fills a limited address space with small blocks and frees them all, twice. A block of another
// size must fit in afterwards, whatever freed blocks the mode lets wait. The environment sets the
// mode.

#include <cstddef>
#include <cstdlib>

#include "integration/limits/address_limit.h"
#include "integration/limits/address_space_in_use.h"
#include "integration/limits/kept_blocks.h"
#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

constexpr Size kRoom = 4 * kMiB;  // for all blocks
constexpr Size kSmall = 4104;
constexpr Size kOther = 64 * kKiB;

// Allocates small blocks until there is no memory, frees them, and returns how many they were.
Size FillAndFree() {
  KeptBlocks blocks;
  while (blocks.Grow(kSmall)) {
  }
  blocks.FreeAll();
  return blocks.count();
}

void RequireOther(const char* when) {
  void* const other = std::malloc(kOther);
  Require(other != nullptr, when, kOther);
  std::free(other);
}

void Run() {
  RequireOther("a block before all others");
  LimitAddressSpace(AddressSpaceInUse() + kRoom);
  const Size first = FillAndFree();
  Require(first * kSmall >= kRoom / 4, "blocks in the address space", first);
  RequireOther("a block after all others");
  const Size second = FillAndFree();
  Require(second >= first * 3 / 4, "blocks of the second time", second, first);
  RequireOther("a block after all others, twice");
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
