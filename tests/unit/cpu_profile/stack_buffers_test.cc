// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/stack_buffers.h"

#include <gtest/gtest.h>

#include <set>

namespace tcmalloc {
namespace {

TEST(StackBuffersTest, EachIsOfOneUntilItIsReleased) {
  static constinit StackBuffers buffers;
  std::set<StackBuffers::Buffer*> claimed;
  while (StackBuffers::Buffer* buffer = buffers.Claim()) {
    ASSERT_TRUE(claimed.insert(buffer).second);
  }
  ASSERT_GT(claimed.size(), 1U);
  StackBuffers::Buffer* const some = *claimed.begin();
  buffers.Release(some);
  EXPECT_EQ(buffers.Claim(), some);
  EXPECT_EQ(buffers.Claim(), nullptr);
}

TEST(StackBuffersTest, AChildOfForkHasAllOfThem) {
  static constinit StackBuffers buffers;
  size_t count = 0;
  while (buffers.Claim() != nullptr) ++count;
  buffers.ReleaseAll();
  size_t again = 0;
  while (buffers.Claim() != nullptr) ++again;
  EXPECT_EQ(again, count);
}

}  // namespace
}  // namespace tcmalloc
