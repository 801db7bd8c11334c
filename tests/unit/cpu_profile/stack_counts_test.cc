// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/stack_counts.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <map>
#include <thread>
#include <vector>

#include "system/own_memory.h"
#include "system/system_calls.h"
#include "unit/bytes.h"

namespace tcmalloc {
namespace {

using Stack = std::vector<uintptr_t>;

std::map<Stack, uint64_t> Contents(const StackCounts& counts) {
  std::map<Stack, uint64_t> contents;
  counts.ForEach([&contents](std::span<const uintptr_t> stack, uint64_t count) {
    contents[Stack(stack.begin(), stack.end())] += count;
  });
  return contents;
}

void Add(StackCounts& counts, const Stack& stack, uint64_t weight) {
  counts.Add({reinterpret_cast<void* const*>(stack.data()), stack.size()}, weight);
}

class StackCountsTest : public ::testing::Test {
 protected:
  ~StackCountsTest() override { counts_.Unmap(); }

  StackCounts counts_;
};

TEST_F(StackCountsTest, AddsUpEachStack) {
  ASSERT_TRUE(counts_.Map());
  Add(counts_, {1, 2, 3}, 1);
  Add(counts_, {1, 2}, 5);
  Add(counts_, {1, 2, 3}, 2);
  Add(counts_, {3, 2, 1}, 1);
  EXPECT_EQ(Contents(counts_),
            (std::map<Stack, uint64_t>{{{1, 2, 3}, 3}, {{1, 2}, 5}, {{3, 2, 1}, 1}}));
  EXPECT_EQ(counts_.added(), 9U);
  EXPECT_EQ(counts_.lost(), 0U);
}

TEST_F(StackCountsTest, IsEmptyAfterItIsMappedAgain) {
  ASSERT_TRUE(counts_.Map());
  Add(counts_, {1}, 1);
  counts_.Unmap();
  ASSERT_TRUE(counts_.Map());
  EXPECT_TRUE(Contents(counts_).empty());
  EXPECT_EQ(counts_.added(), 0U);
}

TEST_F(StackCountsTest, CountsTheMemoryItUses) {
  const size_t before = own_bytes.get();
  ASSERT_TRUE(counts_.Map());
  EXPECT_EQ(own_bytes.get(), before);
  constexpr uintptr_t kStacks = 20'000;
  constexpr size_t kRecordBytes = 5 * sizeof(uint64_t);
  for (int round = 0; round < 2; ++round) {
    for (uintptr_t i = 1; i <= kStacks; ++i) Add(counts_, {i, i, i}, 1);
    const size_t used = own_bytes.get() - before;
    EXPECT_GE(used, kStacks * kRecordBytes);
    // The pages of all slots.
    EXPECT_LE(used, kStacks * kRecordBytes + (size_t{4} << 20));
  }
  counts_.Unmap();
  EXPECT_EQ(own_bytes.get(), before);
}

TEST_F(StackCountsTest, CutsDeepStacks) {
  ASSERT_TRUE(counts_.Map());
  Stack deep;
  for (uintptr_t i = 1; i <= kMostFrames + 10; ++i) deep.push_back(i);
  Add(counts_, deep, 1);
  const std::map<Stack, uint64_t> contents = Contents(counts_);
  ASSERT_EQ(contents.size(), 1U);
  EXPECT_EQ(contents.begin()->first, Stack(deep.begin(), deep.begin() + kMostFrames));
}

TEST_F(StackCountsTest, LosesNothingUncounted) {
  ASSERT_TRUE(counts_.Map(size_t{16} << 10));
  constexpr uintptr_t kStacks = 20'000;
  for (uintptr_t i = 1; i <= kStacks; ++i) Add(counts_, {i, i}, 2);
  uint64_t kept = 0;
  for (const auto& [stack, count] : Contents(counts_)) {
    EXPECT_EQ(count, 2U);
    kept += count;
  }
  EXPECT_GT(kept, 0U);
  EXPECT_GT(counts_.lost(), 0U);
  EXPECT_EQ(kept + counts_.lost(), 2 * kStacks);
  EXPECT_EQ(counts_.added(), 2 * kStacks);
}

TEST_F(StackCountsTest, ThreadsAddTheSameStacks) {
  ASSERT_TRUE(counts_.Map());
  constexpr int kThreads = 4;
  constexpr uintptr_t kStacks = 500;
  constexpr int kRounds = 20;
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([this] {
      for (int round = 0; round < kRounds; ++round) {
        for (uintptr_t stack = 1; stack <= kStacks; ++stack) Add(counts_, {stack, 7, stack}, 1);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::map<Stack, uint64_t> contents = Contents(counts_);
  EXPECT_EQ(contents.size(), kStacks);
  for (const auto& [stack, count] : contents) EXPECT_EQ(count, uint64_t{kThreads * kRounds});
}

// Address space of a limited process, and the bytes that were mapped of it.
class LimitedAddressSpace {
 public:
  LimitedAddressSpace(int resource, size_t limit) {
    limited_ = resource;
    limit_ = limit;
    mapped_ = 0;
    system_calls.getrlimit = [](int asked, rlimit* found) {
      *found = {asked == limited_ ? limit_ : RLIM_INFINITY, RLIM_INFINITY};
      return 0;
    };
    system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                           off_t offset) {
      mapped_ += bytes;
      return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
    };
  }
  ~LimitedAddressSpace() {
    system_calls.getrlimit = real_system_calls.getrlimit;
    system_calls.mmap = real_system_calls.mmap;
  }
  LimitedAddressSpace(const LimitedAddressSpace&) = delete;
  LimitedAddressSpace& operator=(const LimitedAddressSpace&) = delete;

  static size_t mapped() { return mapped_; }

 private:
  inline static int limited_ = 0;
  inline static rlim_t limit_ = 0;
  inline static size_t mapped_ = 0;
};

TEST_F(StackCountsTest, TakesASmallShareOfALimit) {
  for (const int resource : {RLIMIT_AS, RLIMIT_DATA}) {
    const LimitedAddressSpace space(resource, 100 * testing::kMiB);
    ASSERT_TRUE(counts_.Map());
    EXPECT_GT(space.mapped(), testing::kMiB / 2);
    EXPECT_LE(space.mapped(), 100 * testing::kMiB / 64);
    Add(counts_, {1, 2, 3}, 4);
    EXPECT_EQ(Contents(counts_), (std::map<Stack, uint64_t>{{{1, 2, 3}, 4}}));
    counts_.Unmap();
  }
}

TEST_F(StackCountsTest, ASmallLimitLeavesASmallTable) {
  const LimitedAddressSpace space(RLIMIT_AS, testing::kMiB);
  ASSERT_TRUE(counts_.Map());
  EXPECT_LE(space.mapped(), 256 * testing::kKiB);
  Add(counts_, {1}, 1);
  EXPECT_EQ(counts_.lost(), 0U);
}

}  // namespace
}  // namespace tcmalloc
