// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/address_window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <cerrno>
#include <set>

#include "base/bits.h"
#include "base/random.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr uintptr_t kMiB = uintptr_t{1} << 20;
constexpr uintptr_t kGiB = uintptr_t{1} << 30;
constexpr int kPageShift = 13;

size_t largest_mapping;
rlim_t address_limit;
rlim_t data_limit;
size_t mapped;

// Maps no more than `largest_mapping` bytes at once, under limits of the test's choice.
class AddressWindowTest : public ::testing::Test {
 protected:
  AddressWindowTest() : saved_(system_calls) {
    largest_mapping = SIZE_MAX;
    address_limit = RLIM_INFINITY;
    data_limit = RLIM_INFINITY;
    mapped = 0;
    system_calls.mmap = [](void* a, size_t bytes, int protection, int flags, int fd, off_t o) {
      if (bytes > largest_mapping) {
        errno = ENOMEM;
        return MAP_FAILED;
      }
      mapped = bytes;
      return real_system_calls.mmap(a, bytes, protection, flags, fd, o);
    };
    system_calls.getrlimit = [](int resource, rlimit* limit) {
      limit->rlim_cur = resource == RLIMIT_AS ? address_limit : data_limit;
      limit->rlim_max = limit->rlim_cur;
      return 0;
    };
  }
  ~AddressWindowTest() override { system_calls = saved_; }

  AddressWindow Reserve() {
    const AddressWindow window = ReserveAddressWindow(kPageShift, 1);
    EXPECT_NE(window.table, nullptr);
    window.table[0] = 1;
    window.table[(window.limit >> kPageShift) - 1] = 1;
    window.table[0] = 0;
    window.table[(window.limit >> kPageShift) - 1] = 0;
    if (mapped != 0) {
      EXPECT_EQ(mapped, window.limit >> kPageShift);
      EXPECT_EQ(::munmap(window.table, mapped), 0);
    }
    return window;
  }

 private:
  SystemCalls saved_;
};

TEST_F(AddressWindowTest, IsLargeWithoutLimits) {
  EXPECT_EQ(Reserve().limit, kLargestWindow);
  EXPECT_EQ(mapped, 128 * kMiB);
}

TEST_F(AddressWindowTest, TableHasAByteForEachPageOfAnySize) {
  for (int shift = 12; shift <= 18; ++shift) {
    const AddressWindow window = ReserveAddressWindow(shift, 1);
    EXPECT_EQ(window.limit, kLargestWindow);
    EXPECT_EQ(mapped, window.limit >> shift);
    EXPECT_EQ(window.table[mapped - 1], 0);
    EXPECT_EQ(::munmap(window.table, mapped), 0);
  }
}

TEST_F(AddressWindowTest, HalvesUntilTheMappingSucceeds) {
  largest_mapping = 5 * kMiB;
  EXPECT_EQ(Reserve().limit, 4 * kMiB << kPageShift);
}

TEST_F(AddressWindowTest, TakesAtMostOneSixtyFourthOfALimit) {
  address_limit = 1024 * kMiB;
  EXPECT_EQ(Reserve().limit, 16 * kMiB << kPageShift);
  data_limit = 65 * kMiB;
  EXPECT_EQ(Reserve().limit, kMiB << kPageShift);
  address_limit = RLIM_INFINITY;
  EXPECT_EQ(Reserve().limit, kMiB << kPageShift);
}

TEST_F(AddressWindowTest, TableHasASmallestSize) {
  address_limit = 1;
  EXPECT_EQ(Reserve().limit, uintptr_t{64} << 10 << kPageShift);
}

TEST_F(AddressWindowTest, UsesAStaticTableWhereNothingCanBeMapped) {
  largest_mapping = 0;
  EXPECT_EQ(Reserve().limit, uintptr_t{64} << 10 << kPageShift);
}

TEST_F(AddressWindowTest, UnreadableLimitIsNone) {
  system_calls.getrlimit = [](int, rlimit*) { return -1; };
  EXPECT_EQ(Reserve().limit, kLargestWindow);
}

TEST(HintStartTest, StaysInItsBounds) {
  for (uintptr_t limit = kGiB / 2; limit <= 64 * kLargestWindow; limit *= 2) {
    for (uint64_t i = 0; i < 2000; ++i) {
      const uintptr_t hint = ChooseHintStart(limit, NextRandom(i));
      if (limit < 8 * kGiB) {
        ASSERT_EQ(hint, 0u);
        continue;
      }
      ASSERT_TRUE(IsAligned(hint, 2 * kMiB));
      ASSERT_GE(hint, 4 * kGiB);
      ASSERT_GE(hint, limit / 8);
      ASSERT_LE(hint, limit / 2);
      if (limit > 128 * kGiB) {
        ASSERT_GE(hint, 64 * kGiB);
      }
    }
  }
}

TEST(HintStartTest, IsRandomAndReachesItsBounds) {
  std::set<uintptr_t> hints;
  for (uint64_t i = 0; i < 1000; ++i) hints.insert(ChooseHintStart(kLargestWindow, NextRandom(i)));
  EXPECT_GT(hints.size(), 950u);
  EXPECT_LT(*hints.begin(), 140 * kGiB);
  EXPECT_GT(*hints.rbegin(), 500 * kGiB);
  EXPECT_EQ(ChooseHintStart(kLargestWindow, 0), 128 * kGiB);
}

}  // namespace
}  // namespace tcmalloc
