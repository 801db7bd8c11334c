// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Several threads at once, for the thread sanitizer and for the invariants.

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "test_transfer.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 4;
constexpr int kSteps = 5000;
constexpr uint32_t kChains = 32;

void Churn(TestTransfer* transfer, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Chain> chains;
  for (int step = 0; step < kSteps; ++step) {
    if (random() % 2 == 0 || chains.empty()) {
      const uint32_t wanted =
          random() % 4 == 0 ? 1 + static_cast<uint32_t>(random() % 4) : TestTransfer::kBatch;
      chains.push_back(transfer->cache.Fetch(wanted));
      // The holder of a chain may write to its objects.
      for (void* object : transfer->space.Objects(chains.back())) {
        static_cast<uint64_t*>(object)[1] = seed;
      }
    } else {
      for (void* object : transfer->space.Objects(chains.back())) {
        ASSERT_EQ(static_cast<uint64_t*>(object)[1], seed);
      }
      transfer->cache.Insert(chains.back());
      chains.pop_back();
    }
    if (random() % 32 == 0) fake_cpu = static_cast<uint32_t>(random() % kThreads);
    if (random() % 64 == 0) transfer->cache.CheckInvariants();
    if (random() % 512 == 0) transfer->cache.Drain();
  }
  for (Chain chain : chains) transfer->cache.Insert(chain);
}

TEST(TransferCacheThreads, Churn) {
  TestTransfer transfer(kChains);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(Churn, &transfer, static_cast<uint64_t>(i) + 1);
  }
  for (std::thread& thread : threads) thread.join();
  transfer->CheckInvariants();
  EXPECT_EQ(transfer.central.objects_out(), transfer->stats().objects);
  transfer->Drain();
  EXPECT_EQ(transfer.central.objects_out(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
