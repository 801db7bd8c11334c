// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Sizes that kClassBySize lacks, in a thread with lists.

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>

#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

class ThreadCacheMediumTest : public ::testing::Test {
 protected:
  static constexpr size_t kSize = 2000;
  static constexpr uint8_t kMedium = SizeClassFor(kSize);

  static inline size_t slow_size;
  static void* Slow(size_t size) {
    slow_size = size;
    return nullptr;
  }

  // Some objects are cached.
  ThreadCacheMediumTest() {
    slow_size = 0;
    cache_.FreeAll(cache_.AllocateMany(kMedium, 3));
  }
  void ExpectServed(void* object) {
    ASSERT_NE(object, nullptr);
    EXPECT_EQ(sources_.space.map->FindInUse(object)->size_class, kMedium);
    EXPECT_EQ(slow_size, 0u);
    cache_->CheckInvariants();
    cache_.Free(object);
  }
  void ExpectRefused(size_t size) {
    const size_t before = cache_->CountObjects(kMedium);
    EXPECT_EQ(AllocateBy(FastThread(cache_->thread()), size, Slow), nullptr);
    EXPECT_EQ(std::exchange(slow_size, 0), size);
    EXPECT_EQ(MallocBy(FastThread(cache_->thread()), size), nullptr);
    EXPECT_EQ(std::exchange(slow_size, 0), size);
    EXPECT_EQ(cache_->CountObjects(kMedium), before);
  }

  struct Sources : TestSources {
    Sources() { context.slow.malloc = Slow; }
  };

  Sources sources_;
  TestCache cache_{sources_};
};

TEST_F(ThreadCacheMediumTest, AreServedFromTheLists) {
  ExpectServed(AllocateBy(FastThread(cache_->thread()), kSize, Slow));
  ExpectServed(MallocBy(FastThread(cache_->thread()), kSize));
}

TEST_F(ThreadCacheMediumTest, TheSlowPathServesWhatTheListsDoNotHave) {
  for (int i = 0; i < 3; ++i) cache_.Collect();
  ASSERT_EQ(cache_->CountObjects(kMedium), 0u);
  ExpectRefused(kSize);
  cache_->CheckInvariants();
}

TEST_F(ThreadCacheMediumTest, TheSlowPathServesLargeSizes) {
  // Where sums that overflow lead.
  cache_.FreeAll(cache_.AllocateMany(1, 3));
  ExpectRefused(kMaxSmallSize + 1);
  ExpectRefused(SIZE_MAX);
}

TEST_F(ThreadCacheMediumTest, AClosedCacheServesNone) {
  cache_->Close();
  ExpectRefused(kSize);
  cache_->Open();
  cache_->thread()->CloseListsByOther();
  ExpectRefused(kSize);
  cache_->Open();
  ExpectServed(MallocBy(FastThread(cache_->thread()), kSize));
}

}  // namespace
}  // namespace tcmalloc::testing
