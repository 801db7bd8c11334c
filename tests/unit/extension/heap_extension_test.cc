// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one, so that nothing else changes it.

#include "extension/heap_extension.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "extension/release.h"
#include "heap/heap.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {
namespace {

using base::MallocRange;
using FreeListInfo = MallocExtension::FreeListInfo;

class HeapExtensionTest : public ::testing::Test {
 protected:
  HeapExtensionTest() {
    heap.EnsureInitialized();
    // Nothing goes back on its own.
    extension_.SetMemoryReleaseRate(0);
  }

  std::vector<MallocRange> Ranges() {
    std::vector<MallocRange> ranges;
    extension_.Ranges(&ranges, [](void* to, const MallocRange* range) {
      static_cast<std::vector<MallocRange>*>(to)->push_back(*range);
    });
    return ranges;
  }
  // The range that holds `address`.
  MallocRange RangeOf(const void* address) {
    const auto wanted = reinterpret_cast<uintptr_t>(address);
    for (const MallocRange& range : Ranges()) {
      if (range.address <= wanted && wanted < range.address + range.length) return range;
    }
    return {0, 0, MallocRange::UNKNOWN, 0};
  }

  // Returns the free bytes in a list of `type` that is for blocks of `size` bytes.
  size_t FreeIn(const std::string& type, size_t size) {
    std::vector<FreeListInfo> lists;
    extension_.GetFreeListSizes(&lists);
    for (const FreeListInfo& list : lists) {
      if (list.type == type && list.min_object_size <= size && size <= list.max_object_size) {
        return list.total_bytes_free;
      }
    }
    ADD_FAILURE() << "no list " << type << " for " << size;
    return 0;
  }

  MallocExtension& extension_ = *ExtensionOfHeap();
};

TEST_F(HeapExtensionTest, IsTheInstanceUntilAnotherIsRegistered) {
  EXPECT_EQ(MallocExtension::instance(), &extension_);
  MallocExtension other;
  MallocExtension::Register(&other);
  EXPECT_EQ(MallocExtension::instance(), &other);
  MallocExtension::Register(nullptr);
  EXPECT_EQ(MallocExtension::instance(), &extension_);
}

TEST_F(HeapExtensionTest, StatisticsAreCutToTheBuffer) {
  std::string buffer(100, 'x');
  extension_.GetStats(buffer.data(), 50);
  EXPECT_EQ(std::strlen(buffer.data()), 49u);
  EXPECT_EQ(buffer[50], 'x');
  extension_.GetStats(buffer.data(), 1);
  EXPECT_EQ(buffer[0], '\0');
  buffer[0] = 'x';
  extension_.GetStats(buffer.data(), 0);
  extension_.GetStats(buffer.data(), -5);
  EXPECT_EQ(buffer[0], 'x');
}

TEST_F(HeapExtensionTest, RangesCoverTheHeapWithoutGaps) {
  void* const small = Allocate(1000);
  void* const large = Allocate(5 * kMiB);
  size_t bytes = 0;
  uintptr_t end = 0;
  for (const MallocRange& range : Ranges()) {
    EXPECT_GE(range.address, end);
    end = range.address + range.length;
    bytes += range.length;
  }
  EXPECT_EQ(bytes, heap.page_heap().stats().system.bytes());

  const MallocRange of_small = RangeOf(small);
  EXPECT_EQ(of_small.type, MallocRange::INUSE);
  EXPECT_GT(of_small.fraction, 0);
  EXPECT_LT(of_small.fraction, 1);
  const MallocRange of_large = RangeOf(large);
  EXPECT_EQ(of_large.address, reinterpret_cast<uintptr_t>(large));
  EXPECT_EQ(of_large.length, 5 * kMiB);
  EXPECT_EQ(of_large.fraction, 1);

  Deallocate(small);
  Deallocate(large);
  EXPECT_EQ(RangeOf(large).type, MallocRange::FREE);
  EXPECT_EQ(RangeOf(large).fraction, 0);
  extension_.ReleaseFreeMemory();
  EXPECT_EQ(RangeOf(large).type, MallocRange::UNMAPPED);
}

TEST_F(HeapExtensionTest, SpansThatGoAsCachesGiveThemUpCountAsReleased) {
  std::vector<void*> blocks(1000);
  for (void*& block : blocks) block = Allocate(1000);
  ReleaseFreeMemory();
  extension_.SetNumericProperty("tcmalloc.aggressive_memory_decommit", 1);
  for (void* block : blocks) Deallocate(block);
  EXPECT_GT(ReleaseFreeMemory(), 0u) << "for malloc_trim to tell";
  extension_.SetNumericProperty("tcmalloc.aggressive_memory_decommit", 0);
}

TEST_F(HeapExtensionTest, FreeListsGrowByWhatIsFreed) {
  void* const block = Allocate(1000);
  extension_.MarkThreadIdle();
  EXPECT_EQ(FreeIn("tcmalloc.thread", 1056), 0u);
  Deallocate(block);
  EXPECT_EQ(FreeIn("tcmalloc.thread", 1056), 1056u);

  void* const large = Allocate(300 * kMiB);
  extension_.ReleaseFreeMemory();
  const size_t before = FreeIn("tcmalloc.large", 300 * kMiB);
  Deallocate(large);
  // Caches that were filled anew meanwhile may have taken a few pages.
  EXPECT_GE(FreeIn("tcmalloc.large", 300 * kMiB), before + 299 * kMiB);
  extension_.ReleaseToSystem(SIZE_MAX);
  EXPECT_EQ(FreeIn("tcmalloc.large", 300 * kMiB), 0u);
  EXPECT_GE(FreeIn("tcmalloc.large_unmapped", 300 * kMiB), 300 * kMiB);
}

TEST_F(HeapExtensionTest, FreeListsSumUpToTheStatistics) {
  std::vector<FreeListInfo> lists = {{1, 1, 1, "stale"}};
  extension_.GetFreeListSizes(&lists);
  std::map<std::string, size_t> free;
  for (const FreeListInfo& list : lists) free[list.type] += list.total_bytes_free;
  EXPECT_EQ(free.count("stale"), 0u);
  size_t value = 0;
  ASSERT_TRUE(extension_.GetNumericProperty("tcmalloc.pageheap_free_bytes", &value));
  EXPECT_EQ(free["tcmalloc.page"] + free["tcmalloc.large"], value);
  ASSERT_TRUE(extension_.GetNumericProperty("tcmalloc.pageheap_unmapped_bytes", &value));
  EXPECT_EQ(free["tcmalloc.page_unmapped"] + free["tcmalloc.large_unmapped"], value);
  ASSERT_TRUE(extension_.GetNumericProperty("tcmalloc.thread_cache_free_bytes", &value));
  EXPECT_EQ(free["tcmalloc.thread"], value);
}

TEST_F(HeapExtensionTest, AnIdleThreadCachesNothing) {
  std::thread([this] {
    std::vector<void*> blocks;
    for (int i = 0; i < 1000; ++i) blocks.push_back(Allocate(200));
    for (void* block : blocks) Deallocate(block);
    EXPECT_GE(extension_.GetThreadCacheSize(), 1000u * 208 / 2);
    extension_.MarkThreadTemporarilyIdle();
    EXPECT_EQ(extension_.GetThreadCacheSize(), 0u);
    Deallocate(Allocate(200));
    EXPECT_GT(extension_.GetThreadCacheSize(), 0u);
  }).join();
}

TEST_F(HeapExtensionTest, TheReleaseRateIsKeptInItsRange) {
  for (const auto& [set, kept] :
       std::map<double, double>{{-1, 0}, {0, 0}, {1e-300, 1e-300}, {2.5, 2.5}, {99, 10}}) {
    extension_.SetMemoryReleaseRate(set);
    EXPECT_EQ(extension_.GetMemoryReleaseRate(), kept);
  }
  extension_.SetMemoryReleaseRate(std::numeric_limits<double>::quiet_NaN());
  EXPECT_EQ(extension_.GetMemoryReleaseRate(), 0);
}

TEST_F(HeapExtensionTest, EstimatesAreWhatBlocksGet) {
  for (size_t size = 0; size < 2 * kMiB; size += size / 8 + 1) {
    void* const block = Allocate(size);
    EXPECT_EQ(extension_.GetAllocatedSize(block), extension_.GetEstimatedAllocatedSize(size));
    Deallocate(block);
  }
  EXPECT_EQ(extension_.GetEstimatedAllocatedSize(SIZE_MAX), 0u);
  EXPECT_EQ(extension_.GetEstimatedAllocatedSize(SIZE_MAX / 2), 0u);
  EXPECT_EQ(extension_.GetAllocatedSize(nullptr), 0u);
}

TEST_F(HeapExtensionTest, OwnsItsBlocksAndNothingElse) {
  for (const size_t size : {size_t{1}, size_t{5000}, 5 * kMiB}) {
    void* const block = Allocate(size);
    EXPECT_EQ(extension_.GetOwnership(block), MallocExtension::kOwned);
    Deallocate(block);
  }
  int local = 0;
  for (const void* foreign : {static_cast<const void*>(nullptr), static_cast<const void*>(&local),
                              reinterpret_cast<const void*>(UINTPTR_MAX)}) {
    EXPECT_EQ(extension_.GetOwnership(foreign), MallocExtension::kNotOwned);
  }
}

TEST_F(HeapExtensionTest, TheGrowthProfileHasOneRecord) {
  std::string text;
  extension_.GetHeapGrowthStacks(&text);
  const PageHeapStats pages = heap.page_heap().stats();
  const std::string counts =
      std::to_string(pages.growths) + ": " + std::to_string(pages.system.bytes());
  EXPECT_EQ(text.find("heap profile: " + counts + " [" + counts + "] @ growth\n" + counts + " ["),
            0u);
  void** const record = extension_.ReadHeapGrowthStackTraces();
  EXPECT_EQ(reinterpret_cast<uintptr_t>(record[0]), pages.growths);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(record[1]), pages.system.bytes());
  EXPECT_EQ(record[2], nullptr);
  EXPECT_EQ(record[3], nullptr);
  delete[] record;
}

}  // namespace
}  // namespace tcmalloc::testing
