// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random calls of the transfer cache over the real central free list, compared with a set of
// objects. See replay.h.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "model/replay.h"
#include "model/transfer_machine.h"

namespace tcmalloc::testing {
namespace {

class TransferModelTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(TransferModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    for (size_t size : {16, 512, 32768}) {
      TransferMachine machine(size, GetParam());
      const Actions actions = RandomActions(seed, 2000, {30, 20, 20, 15, 1, 0, 1, 20, 10},
                                            {20, 15, 30, 20, 2, 1, 0, 10, 20});
      if (!Replay(machine, actions)) return;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(MaxChains, TransferModelTest, ::testing::Values(1, 3, 64));

}  // namespace
}  // namespace tcmalloc::testing
