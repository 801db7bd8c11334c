// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random calls of the central free list, compared with sets of objects. See replay.h.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "model/central_machine.h"
#include "model/replay.h"

namespace tcmalloc::testing {
namespace {

class CentralModelTest : public ::testing::TestWithParam<size_t> {};

TEST_P(CentralModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    CentralMachine machine(GetParam());
    if (!Replay(machine, RandomActions(seed, 3000, {6, 4, 0, 1}, {4, 6, 1, 0}))) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, CentralModelTest,
                         ::testing::Values(8, 64, 1152, 16384, kMaxSmallSize));

}  // namespace
}  // namespace tcmalloc::testing
