// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <gtest/gtest.h>

#include <thread>
#include <vector>

#include "unit/unwind/random_calls.h"

namespace tcmalloc::testing {
namespace {

TEST(RememberedWalkThreadsTest, FindWhatFreshWalksFind) {
  std::vector<std::thread> threads;
  for (unsigned seed = 1; seed <= 8; ++seed) {
    threads.emplace_back([seed] { RandomCalls(seed, 2000).Run(); });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace tcmalloc::testing
