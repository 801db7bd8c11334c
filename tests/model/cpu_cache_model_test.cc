// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random calls of a few threads that move between the caches of a few CPUs, compared with a set of
// objects. See replay.h.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "model/cpu_cache_machine.h"
#include "model/replay.h"

namespace tcmalloc::testing {
namespace {

struct CpuCacheConfig {
  CpuIds ids;
  size_t bytes_per_cpu;
};

class CpuCacheModelTest : public ::testing::TestWithParam<CpuCacheConfig> {};

TEST_P(CpuCacheModelTest, RandomActions) {
  if (Support().state != RseqState::kUsable) GTEST_SKIP() << RseqStateName(Support().state);
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    CpuCacheMachine machine(GetParam().ids, GetParam().bytes_per_cpu);
    const Actions actions = RandomActions(seed, 2000, {20, 40, 15, 25, 10, 5, 1, 1, 1, 1, 1},
                                          {15, 25, 20, 45, 10, 3, 2, 1, 0, 1, 1});
    if (!Replay(machine, actions)) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, CpuCacheModelTest,
                         ::testing::Values(CpuCacheConfig{CpuIds::kMmCid, size_t{3} << 19},
                                           CpuCacheConfig{CpuIds::kMmCid, size_t{100} << 10},
                                           CpuCacheConfig{CpuIds::kMmCid, 0},
                                           CpuCacheConfig{CpuIds::kCpuId, size_t{100} << 10},
                                           CpuCacheConfig{CpuIds::kCpuId, size_t{16} << 20}));

}  // namespace
}  // namespace tcmalloc::testing
