// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Other threads look for an object in a cache while its owner uses it.

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "unit/cache/per_thread/test_cache.h"

namespace tcmalloc::testing {
namespace {

class ThreadCacheHoldsTest : public ::testing::Test {
 protected:
  // Leaves objects in full chains.
  std::vector<void*> Fill() {
    const std::vector<void*> objects = cache_.AllocateMany(kClass, kObjects);
    cache_.FreeAll(objects);
    return objects;
  }
  void Flush() {
    cache_->Close();
    cache_->Flush();
    cache_->Open();
  }

  static constexpr size_t kObjects = 2000;

  TestSources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheHoldsTest, OthersFindWhatTheOwnerFinds) {
  void* used = cache_.Allocate(kClass);
  size_t held = 0;
  for (void* object : Fill()) {
    const bool holds = cache_->Holds(object, kClass, true);
    EXPECT_EQ(cache_->Holds(object, kClass, false), holds);
    held += holds ? 1 : 0;
  }
  EXPECT_GT(held, kObjects / 2);
  EXPECT_FALSE(cache_->Holds(used, kClass, false));
  cache_.Free(used);
}

// A flush gives back the array of the full chains, and whoever asks next may get it.
TEST_F(ThreadCacheHoldsTest, TheOwnerMayFlushMeanwhile) {
  if (kThreadSanitizer)
    GTEST_SKIP() << "others read lists that their owner changes by plain writes";
  constexpr int kRounds = 100;
  void* used = cache_.Allocate(kClass);
  std::atomic<bool> started = false;
  std::atomic<bool> stop = false;
  std::thread reader([&] {
    while (!stop) {
      EXPECT_FALSE(cache_->Holds(used, kClass, false));
      started = true;
    }
  });
  while (!started) std::this_thread::yield();
  for (int round = 0; round < kRounds; ++round) {
    Fill();
    Flush();
  }
  stop = true;
  reader.join();
  cache_.Free(used);
  cache_->CheckInvariants();
}

}  // namespace
}  // namespace tcmalloc::testing
