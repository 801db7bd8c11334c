// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random spans come and go in the page map, compared with a map of runs. See replay.h.

#include <gtest/gtest.h>

#include <cstdint>

#include "model/page_map_machine.h"
#include "model/replay.h"

namespace tcmalloc::testing {
namespace {

TEST(PageMapModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    PageMapMachine machine;
    if (!Replay(machine, RandomActions(seed, 3000, {6, 3, 3, 6}, {4, 2, 6, 6}))) break;
  }
}

}  // namespace
}  // namespace tcmalloc::testing
