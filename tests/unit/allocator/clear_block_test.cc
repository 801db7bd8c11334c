// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/clear_block.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kMebibyte = size_t{1} << 20;
constexpr size_t kBytes = 16 * kMebibyte;

size_t ResidentPages(void* block) {
  std::vector<unsigned char> in_core(kBytes / KernelPageSize());
  EXPECT_EQ(::mincore(block, kBytes, in_core.data()), 0);
  return static_cast<size_t>(std::count_if(in_core.begin(), in_core.end(),
                                           [](unsigned char page) { return (page & 1) != 0; }));
}

bool IsZero(const char* block, size_t size) {
  return std::all_of(block, block + size, [](char c) { return c == 0; });
}

// A block without hugepages, whose last owner wrote to nothing.
class ClearBlockTest : public ::testing::Test {
 protected:
  ClearBlockTest() {
    ::madvise(block_, kBytes, MADV_NOHUGEPAGE);
    EXPECT_EQ(::madvise(block_, kBytes, MADV_DONTNEED), 0);
  }
  ~ClearBlockTest() override {
    system_calls = real_system_calls;
    Deallocate(block_);
  }

  void Touch(size_t distance) {
    for (size_t i = 0; i < kBytes; i += distance) block_[i] = 1;
  }

  char* block_ = static_cast<char*>(Allocate(kBytes));
};

TEST_F(ClearBlockTest, WhatWasHardlyTouchedIsGivenBack) {
  Touch(kMebibyte);
  ClearBlock(block_, kBytes);
  EXPECT_EQ(ResidentPages(block_), 0u);
  EXPECT_TRUE(IsZero(block_, kBytes));
}

TEST_F(ClearBlockTest, WhatWasInUseStaysResident) {
  std::memset(block_, 1, kBytes / 2);
  ClearBlock(block_, kBytes);
  EXPECT_EQ(ResidentPages(block_), kBytes / 2 / KernelPageSize());
  EXPECT_TRUE(IsZero(block_, kBytes));
}

TEST_F(ClearBlockTest, WritesNothingBehindTheSize) {
  std::memset(block_, 1, kBytes);
  ClearBlock(block_, kBytes / 2 + 5);
  EXPECT_TRUE(IsZero(block_, kBytes / 2 + 5));
  EXPECT_EQ(block_[kBytes / 2 + 5], 1);
  Touch(kMebibyte);
  ClearBlock(block_ + 8, kBytes - kMebibyte);
  EXPECT_EQ(block_[0], 1);
  EXPECT_TRUE(IsZero(block_ + 8, kBytes - kMebibyte));
  EXPECT_EQ(block_[kBytes - kMebibyte + 8], 1);
}

TEST_F(ClearBlockTest, WritesWhereTheKernelDoesNotTell) {
  system_calls.mincore = [](void*, size_t, unsigned char*) {
    errno = ENOSYS;
    return -1;
  };
  Touch(kMebibyte);
  errno = 5;
  ClearBlock(block_, kBytes);
  EXPECT_EQ(errno, 5);
  EXPECT_TRUE(IsZero(block_, kBytes));
}

TEST_F(ClearBlockTest, WritesWhereTheKernelRefuses) {
  system_calls.madvise = [](void*, size_t, int) {
    errno = EINVAL;
    return -1;
  };
  Touch(kMebibyte);
  errno = 5;
  ClearBlock(block_, kBytes);
  EXPECT_EQ(errno, 5);
  EXPECT_TRUE(IsZero(block_, kBytes));
}

TEST_F(ClearBlockTest, CallocGetsABlockThatIsUsedAgain) {
  Touch(kMebibyte);
  Deallocate(block_);
  block_ = static_cast<char*>(AllocateZeroed(kBytes));
  EXPECT_LE(ResidentPages(block_), kBytes / KernelPageSize() / 8);
  EXPECT_TRUE(IsZero(block_, kBytes));
}

}  // namespace
}  // namespace tcmalloc::testing
