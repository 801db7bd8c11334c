// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one, so that nothing else changes it.

#include "extension/properties.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string_view>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "extension/release.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kMiB = size_t{1} << 20;

// Every name of gperftools and of google/tcmalloc that concerns what there is here.
constexpr std::string_view kReadable[] = {
    "generic.current_allocated_bytes",
    "generic.heap_size",
    "generic.total_physical_bytes",
    "generic.bytes_in_use_by_app",
    "generic.virtual_memory_used",
    "generic.physical_memory_used",
    "tcmalloc.slack_bytes",
    "tcmalloc.central_cache_free_bytes",
    "tcmalloc.central_cache_free",
    "tcmalloc.transfer_cache_free_bytes",
    "tcmalloc.transfer_cache_free",
    "tcmalloc.thread_cache_free_bytes",
    "tcmalloc.thread_cache_free",
    "tcmalloc.cpu_free",
    "tcmalloc.local_bytes",
    "tcmalloc.pageheap_free_bytes",
    "tcmalloc.page_heap_free",
    "tcmalloc.pageheap_unmapped_bytes",
    "tcmalloc.page_heap_unmapped",
    "tcmalloc.pageheap_committed_bytes",
    "tcmalloc.pageheap_scavenge_count",
    "tcmalloc.pageheap_commit_count",
    "tcmalloc.pageheap_total_commit_bytes",
    "tcmalloc.pageheap_decommit_count",
    "tcmalloc.pageheap_total_decommit_bytes",
    "tcmalloc.pageheap_reserve_count",
    "tcmalloc.pageheap_total_reserve_bytes",
    "tcmalloc.current_total_thread_cache_bytes",
    "tcmalloc.impl.thread_cache_count",
    "tcmalloc.thread_cache_count",
    "tcmalloc.metadata_bytes",
    "tcmalloc.external_fragmentation_bytes",
    "tcmalloc.required_bytes",
    "tcmalloc.per_cpu_caches_active",
    "tcmalloc.hard_usage_limit_bytes",
    "tcmalloc.desired_usage_limit_bytes",
    "tcmalloc.hard_limit_hits",
    "tcmalloc.soft_limit_hits",
    "tcmalloc.num_released_total_bytes",
    "tcmalloc.num_released_soft_limit_exceeded_bytes",
};
constexpr std::string_view kWritable[] = {
    "tcmalloc.max_total_thread_cache_bytes",
    "tcmalloc.min_per_thread_cache_bytes",
    "tcmalloc.aggressive_memory_decommit",
    "tcmalloc.heap_limit_mb",
};

uint64_t Get(std::string_view name) {
  const Property* property = FindProperty(name);
  EXPECT_NE(property, nullptr) << name;
  return property != nullptr ? property->get() : 0;
}

// Returns what the property is afterwards.
uint64_t Set(std::string_view name, uint64_t value) {
  FindProperty(name)->set(value);
  return Get(name);
}

class PropertiesTest : public ::testing::Test {
 protected:
  PropertiesTest() { heap.EnsureInitialized(); }
};

TEST_F(PropertiesTest, NamesAreThoseOfBothFamilies) {
  std::set<std::string_view> names;
  for (const Property& property : Properties()) {
    EXPECT_TRUE(names.insert(property.name).second) << property.name;
    EXPECT_FALSE(property.meaning.empty());
  }
  std::set<std::string_view> expected(std::begin(kReadable), std::end(kReadable));
  expected.insert(std::begin(kWritable), std::end(kWritable));
  EXPECT_EQ(names, expected);
  for (const std::string_view name : kReadable) EXPECT_EQ(FindProperty(name)->set, nullptr) << name;
  for (const std::string_view name : kWritable) EXPECT_NE(FindProperty(name)->set, nullptr) << name;
}

TEST_F(PropertiesTest, OtherNamesAreNotFound) {
  for (const std::string_view name : {"", "generic.heap_siz", "generic.heap_sizes", "heap_size"}) {
    EXPECT_EQ(FindProperty(name), nullptr) << name;
  }
}

TEST_F(PropertiesTest, PartsSumUpToTheHeap) {
  std::vector<void*> blocks;
  for (size_t size = 1; size < 2 * kMiB; size += size / 4 + 1) blocks.push_back(Allocate(size));
  for (size_t i = 0; i < blocks.size(); i += 2) Deallocate(blocks[i]);
  EXPECT_EQ(Get("generic.heap_size") + Get("tcmalloc.pageheap_unmapped_bytes"),
            Get("tcmalloc.pageheap_total_reserve_bytes"));
  EXPECT_EQ(Get("generic.physical_memory_used"),
            Get("generic.current_allocated_bytes") + Get("tcmalloc.external_fragmentation_bytes"));
  EXPECT_EQ(Get("tcmalloc.required_bytes") + Get("tcmalloc.pageheap_free_bytes"),
            Get("generic.total_physical_bytes"));
  EXPECT_EQ(Get("tcmalloc.slack_bytes"),
            Get("tcmalloc.pageheap_free_bytes") + Get("tcmalloc.pageheap_unmapped_bytes"));
  EXPECT_EQ(Get("tcmalloc.thread_cache_free_bytes"),
            Get("tcmalloc.thread_cache_free") + Get("tcmalloc.cpu_free"));
  EXPECT_EQ(
      Get("tcmalloc.pageheap_committed_bytes"),
      Get("tcmalloc.pageheap_total_commit_bytes") - Get("tcmalloc.pageheap_total_decommit_bytes"));
  for (size_t i = 1; i < blocks.size(); i += 2) Deallocate(blocks[i]);
}

TEST_F(PropertiesTest, ABlockIsCounted) {
  const uint64_t before = Get("generic.current_allocated_bytes");
  const uint64_t commits = Get("tcmalloc.pageheap_commit_count");
  void* const block = Allocate(100 * kMiB);
  EXPECT_EQ(Get("generic.current_allocated_bytes"), before + 100 * kMiB);
  EXPECT_GE(Get("generic.heap_size"), 100 * kMiB);
  EXPECT_GT(Get("tcmalloc.pageheap_commit_count"), commits);
  EXPECT_GT(Get("tcmalloc.pageheap_reserve_count"), 0u);
  Deallocate(block);
  EXPECT_EQ(Get("generic.current_allocated_bytes"), before);
  // Part of it may have gone back to the system, for so much is freed.
  EXPECT_GE(Get("tcmalloc.slack_bytes"), 100 * kMiB);
  EXPECT_GT(Get("tcmalloc.pageheap_free_bytes"), 50 * kMiB);
}

TEST_F(PropertiesTest, AReleaseIsCounted) {
  Deallocate(Allocate(64 * kMiB));
  const uint64_t released = Get("tcmalloc.num_released_total_bytes");
  const uint64_t count = Get("tcmalloc.pageheap_decommit_count");
  EXPECT_GE(ReleaseFreeSpans(64 * kMiB), 64 * kMiB);
  EXPECT_GE(Get("tcmalloc.num_released_total_bytes"), released + 64 * kMiB);
  EXPECT_GT(Get("tcmalloc.pageheap_decommit_count"), count);
}

TEST_F(PropertiesTest, TheTotalOfThreadCachesIsKeptInItsRange) {
  constexpr std::string_view kName = "tcmalloc.max_total_thread_cache_bytes";
  EXPECT_EQ(Get(kName), 32 * kMiB);
  EXPECT_EQ(Set(kName, 5 * kMiB), 5 * kMiB);
  EXPECT_EQ(Set(kName, 0), kMiB / 2);
  EXPECT_EQ(Set(kName, UINT64_MAX), 1024 * kMiB);
  EXPECT_EQ(Set(kName, 32 * kMiB), 32 * kMiB);
}

TEST_F(PropertiesTest, TheLeastOfAThreadCacheIsKeptInItsRange) {
  constexpr std::string_view kName = "tcmalloc.min_per_thread_cache_bytes";
  const uint64_t before = Get(kName);
  EXPECT_EQ(Set(kName, 128 << 10), 128u << 10);
  EXPECT_EQ(Set(kName, 0), 4096u);
  EXPECT_EQ(Set(kName, UINT64_MAX), 32 * kMiB);
  EXPECT_EQ(Set(kName, before), before);
}

TEST_F(PropertiesTest, AggressiveDecommitLeavesNothingFree) {
  constexpr std::string_view kName = "tcmalloc.aggressive_memory_decommit";
  EXPECT_EQ(Set(kName, 7), 1u);
  const uint64_t before = Get("tcmalloc.pageheap_free_bytes");
  Deallocate(Allocate(8 * kMiB));
  EXPECT_LE(Get("tcmalloc.pageheap_free_bytes"), before);
  EXPECT_EQ(Set(kName, 0), 0u);
}

TEST_F(PropertiesTest, TheHeapLimitIsInForce) {
  constexpr std::string_view kName = "tcmalloc.heap_limit_mb";
  EXPECT_EQ(Get("tcmalloc.hard_usage_limit_bytes"), UINT64_MAX);
  EXPECT_EQ(Set(kName, 200), 200u);
  EXPECT_EQ(Get("tcmalloc.hard_usage_limit_bytes"), 200 * kMiB);
  // An eighth of the limit is for caches.
  EXPECT_EQ(Get("tcmalloc.max_total_thread_cache_bytes"), 25 * kMiB);
  EXPECT_EQ(Allocate(300 * kMiB), nullptr);
  EXPECT_GT(Get("tcmalloc.hard_limit_hits"), 0u);
  EXPECT_EQ(Set(kName, UINT64_MAX), uint64_t{1} << 28);
  EXPECT_EQ(Set(kName, 0), 0u);
  void* const block = Allocate(300 * kMiB);
  EXPECT_NE(block, nullptr);
  Deallocate(block);
}

}  // namespace
}  // namespace tcmalloc::testing
