// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/address_window.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <set>

#include "base/bits.h"
#include "base/random.h"
#include "fakes/address_sanitizer.h"
#include "system/system_calls.h"
#include "unit/bytes.h"

namespace tcmalloc {
namespace {

using testing::kGiB;
using testing::kKiB;
using testing::kMiB;
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

  AddressWindow Reserve(int page_shift = kPageShift, size_t table_bytes = kFirstTableBytes) {
    const AddressWindow window = ReserveAddressWindow(page_shift, table_bytes, 1);
    ExpectTable(window);
    return window;
  }

  // Every entry of the table is there.
  static void ExpectTable(const AddressWindow& window) {
    ASSERT_NE(window.table, nullptr);
    for (const uintptr_t page : {uintptr_t{0}, (window.limit >> window.page_shift) - 1}) {
      EXPECT_EQ(window.table[page], 0);
      window.table[page] = 1;
      window.table[page] = 0;
    }
  }

  static void Unmap(const AddressWindow& window) {
    if (mapped == 0) return;
    EXPECT_EQ(::munmap(window.table, window.limit >> window.page_shift), 0);
  }

 private:
  SystemCalls saved_;
};

TEST_F(AddressWindowTest, TableIsSmallAtFirst) {
  const AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, kFirstTableBytes << kPageShift);
  EXPECT_EQ(mapped, kFirstTableBytes);
  Unmap(window);
}

TEST_F(AddressWindowTest, TableIsAsLargeAsIsAskedFor) {
  for (const size_t table_bytes : {kLargestWindow >> kPageShift, SIZE_MAX}) {
    const AddressWindow window = Reserve(kPageShift, table_bytes);
    EXPECT_EQ(window.limit, kLargestWindow);
    EXPECT_GE(window.hint_start, kLargestWindow / 8);
    Unmap(window);
  }
}

TEST_F(AddressWindowTest, TableHasAByteForEachPageOfAnySize) {
  for (int shift = 12; shift <= 18; ++shift) {
    const AddressWindow window = Reserve(shift);
    EXPECT_EQ(window.limit, std::min(kFirstTableBytes << shift, kLargestWindow));
    EXPECT_EQ(mapped, window.limit >> shift);
    Unmap(window);
  }
}

TEST_F(AddressWindowTest, GrowsInPlaceToTheLargestWindow) {
  for (int shift = 12; shift <= 18; ++shift) {
    AddressWindow window = Reserve(shift);
    const uint8_t* const table = window.table;
    while (window.limit < kLargestWindow) {
      const uintptr_t before = window.limit;
      ASSERT_TRUE(ExtendAddressWindow(&window, before + 1));
      EXPECT_EQ(window.limit, std::min(2 * before, kLargestWindow));
      EXPECT_EQ(window.table, table);
      ExpectTable(window);
    }
    EXPECT_FALSE(ExtendAddressWindow(&window, kLargestWindow + 1));
    EXPECT_EQ(window.limit, kLargestWindow);
    Unmap(window);
  }
}

TEST_F(AddressWindowTest, GrowsAsFarAsIsNeededAtOnce) {
  AddressWindow window = Reserve();
  ASSERT_TRUE(ExtendAddressWindow(&window, 700 * kGiB));
  EXPECT_GE(window.limit, 700 * kGiB);
  EXPECT_LT(window.limit, 701 * kGiB);
  ExpectTable(window);
  EXPECT_FALSE(ExtendAddressWindow(&window, UINTPTR_MAX));
  Unmap(window);
}

TEST_F(AddressWindowTest, StaysAsItIsWhereTheAddressesBehindItAreTaken) {
  AddressWindow window = Reserve();
  void* const behind = window.table + (window.limit >> kPageShift);
  ASSERT_EQ(
      ::mmap(behind, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0),
      behind);
  EXPECT_FALSE(ExtendAddressWindow(&window, window.limit + 1));
  EXPECT_EQ(window.limit, kFirstTableBytes << kPageShift);
  EXPECT_EQ(::munmap(behind, 4096), 0);
  EXPECT_TRUE(ExtendAddressWindow(&window, window.limit + 1));
  Unmap(window);
}

// Kernels before 4.17 take the address for a hint.
TEST_F(AddressWindowTest, StaysAsItIsWhereTheKernelMapsElsewhere) {
  AddressWindow window = Reserve();
  static void* elsewhere;
  static int unmapped;
  elsewhere = nullptr;
  unmapped = 0;
  system_calls.mmap = [](void*, size_t bytes, int protection, int flags, int fd, off_t o) {
    elsewhere =
        real_system_calls.mmap(nullptr, bytes, protection, flags & ~MAP_FIXED_NOREPLACE, fd, o);
    return elsewhere;
  };
  system_calls.munmap = [](void* start, size_t bytes) {
    if (start == elsewhere) ++unmapped;
    return real_system_calls.munmap(start, bytes);
  };
  EXPECT_FALSE(ExtendAddressWindow(&window, window.limit + 1));
  EXPECT_EQ(unmapped, 1);
  Unmap(window);
  // The first table may lie anywhere.
  EXPECT_EQ(Reserve().limit, kFirstTableBytes << kPageShift);
}

TEST_F(AddressWindowTest, LiesElsewhereWhereAddressesEndEarly) {
  if (testing::kAddressSanitizer) GTEST_SKIP() << "the address sanitizer takes these addresses";
  system_calls.mmap = [](void* a, size_t bytes, int protection, int flags, int fd, off_t o) {
    if (reinterpret_cast<uintptr_t>(a) > 512 * kGiB) {
      errno = ENOMEM;
      return MAP_FAILED;
    }
    mapped = bytes;
    return real_system_calls.mmap(a, bytes, protection, flags, fd, o);
  };
  AddressWindow window = Reserve();
  EXPECT_LT(reinterpret_cast<uintptr_t>(window.table), 512 * kGiB);
  EXPECT_TRUE(ExtendAddressWindow(&window, 100 * kGiB));
  ExpectTable(window);
  Unmap(window);
}

TEST_F(AddressWindowTest, HalvesUntilTheMappingSucceeds) {
  largest_mapping = 3 * kFirstTableBytes / 4;
  const AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, kFirstTableBytes / 2 << kPageShift);
  Unmap(window);
}

TEST_F(AddressWindowTest, TakesAtMostOneSixtyFourthOfALimit) {
  address_limit = 1024 * kMiB;
  AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, kFirstTableBytes << kPageShift);
  EXPECT_TRUE(ExtendAddressWindow(&window, 16 * kMiB << kPageShift));
  EXPECT_FALSE(ExtendAddressWindow(&window, window.limit + 1));
  Unmap(window);
  data_limit = 65 * kMiB;
  window = Reserve();
  EXPECT_EQ(window.limit, kMiB << kPageShift);
  EXPECT_FALSE(ExtendAddressWindow(&window, window.limit + 1));
  Unmap(window);
}

TEST_F(AddressWindowTest, TableHasASmallestSize) {
  address_limit = 1;
  const AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, uintptr_t{64} << 10 << kPageShift);
  Unmap(window);
}

TEST_F(AddressWindowTest, UsesAStaticTableWhereNothingCanBeMapped) {
  largest_mapping = 0;
  AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, uintptr_t{64} << 10 << kPageShift);
  largest_mapping = SIZE_MAX;
  EXPECT_FALSE(ExtendAddressWindow(&window, window.limit + 1));
}

TEST_F(AddressWindowTest, UnreadableLimitIsNone) {
  system_calls.getrlimit = [](int, rlimit*) { return -1; };
  const AddressWindow window = Reserve();
  EXPECT_EQ(window.limit, kFirstTableBytes << kPageShift);
  Unmap(window);
}

TEST_F(AddressWindowTest, TableLiesAtARandomPlace) {
  std::set<uint8_t*> tables;
  for (uint64_t i = 0; i < 200; ++i) {
    const AddressWindow window = ReserveAddressWindow(kPageShift, kFirstTableBytes, i);
    tables.insert(window.table);
    Unmap(window);
  }
  EXPECT_GT(tables.size(), 190u);
}

TEST(HintStartTest, StaysInItsBounds) {
  for (uintptr_t limit = kGiB / 2; limit <= 64 * kLargestWindow; limit *= 2) {
    for (uint64_t i = 0; i < 2000; ++i) {
      const uintptr_t hint = ChooseHintStart(limit, NextRandom(i));
      if (limit < 8 * kGiB) {
        ASSERT_EQ(hint, 0u);
        continue;
      }
      ASSERT_TRUE(IsAligned(hint, 64 * kKiB));
      ASSERT_GE(hint, 4 * kGiB);
      ASSERT_GE(hint, limit / 8);
      ASSERT_GE((hint + 2 * kMiB) % (4 * kGiB), 18 * kMiB)
          << "words of two small numbers lead to where the heap begins";
      ASSERT_LE(hint, limit - limit / 8);
    }
  }
}

TEST(HintStartTest, IsRandomAndReachesItsBounds) {
  constexpr uintptr_t kLimit = kFirstTableBytes << kPageShift;
  std::set<uintptr_t> hints;
  for (uint64_t i = 0; i < 1000; ++i) hints.insert(ChooseHintStart(kLimit, NextRandom(i)));
  EXPECT_GT(hints.size(), 950u);
  EXPECT_LT(*hints.begin(), 5 * kGiB);
  EXPECT_GT(*hints.rbegin(), 13 * kGiB);
  EXPECT_EQ(ChooseHintStart(kLimit, 0), 4 * kGiB + 18 * kMiB);
}

TEST_F(AddressWindowTest, ALoneTableGetsPartsWhereTheyBelong) {
  constexpr size_t kBytes = 64 * kKiB;
  auto* table = static_cast<uint8_t*>(MapLoneTable(kBytes, kGiB, 1));
  ASSERT_NE(table, nullptr);
  EXPECT_EQ(std::count(table, table + kBytes, 0), kBytes);
  uint8_t* part = table + kGiB - kBytes;
  largest_mapping = kBytes - 1;
  EXPECT_FALSE(MapPartOfLoneTable(part, kBytes));
  largest_mapping = kBytes;
  ASSERT_TRUE(MapPartOfLoneTable(part, kBytes));
  EXPECT_EQ(std::count(part, part + kBytes, 0), kBytes);
  *part = 1;
  EXPECT_TRUE(MapPartOfLoneTable(part, kBytes)) << "it is there";
  EXPECT_EQ(*part, 1);
  EXPECT_EQ(munmap(table, kBytes), 0);
  EXPECT_EQ(munmap(part, kBytes), 0);
}

}  // namespace
}  // namespace tcmalloc
