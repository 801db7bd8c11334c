// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random calls of a few thread caches that share their sources and exchange objects, compared with
// a set of objects. See replay.h.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "model/replay.h"
#include "model/thread_cache_machine.h"

namespace tcmalloc::testing {
namespace {

struct ThreadCacheConfig {
  Window window;
  size_t budget;
};

class ThreadCacheModelTest : public ::testing::TestWithParam<ThreadCacheConfig> {};

TEST_P(ThreadCacheModelTest, RandomActions) {
  for (const uint64_t seed : ModelSeeds()) {
    SCOPED_TRACE(seed);
    ThreadCacheMachine machine(GetParam().window, GetParam().budget);
    const Actions actions = RandomActions(seed, 2000, {20, 40, 15, 25, 3, 1, 1, 1, 1, 2},
                                          {15, 25, 20, 45, 3, 2, 1, 1, 0, 4});
    if (!Replay(machine, actions)) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Configs, ThreadCacheModelTest,
                         ::testing::Values(ThreadCacheConfig{Window::kAll, size_t{256} << 10},
                                           ThreadCacheConfig{Window::kAll, size_t{8} << 20},
                                           ThreadCacheConfig{Window::kAll, 0},
                                           ThreadCacheConfig{Window::kFirstBytes, size_t{1} << 20},
                                           ThreadCacheConfig{Window::kNone, size_t{1} << 20}));

}  // namespace
}  // namespace tcmalloc::testing
