// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one, so that nothing else changes it.

#include "extension/properties.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "extension/release.h"
#include "heap/heap.h"
#include "report/current_statistics.h"
#include "report/fields.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {
namespace {

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
    "tcmalloc.successful_shrinks_after_hard_limit_hit",
    "tcmalloc.successful_shrinks_after_soft_limit_hit",
    "tcmalloc.num_released_total_bytes",
    "tcmalloc.num_released_release_memory_to_system_bytes",
    "tcmalloc.num_released_process_background_actions_bytes",
    "tcmalloc.num_released_soft_limit_exceeded_bytes",
    "tcmalloc.num_released_hard_limit_exceeded_bytes",
    "generic.peak_memory_usage",
    "generic.realized_fragmentation",
};
// Properties of things that there are not: always 0.
constexpr std::string_view kAlwaysZero[] = {
    "tcmalloc.sharded_transfer_cache_free",
    "tcmalloc.security_partitioning_active",
    "tcmalloc.experiment.TCMALLOC_HUGE_REGION_ADAPTIVE_RELEASE",
    "tcmalloc.experiment.TCMALLOC_PER_CPU_CACHE_SIZE_1MB",
    "tcmalloc.experiment.TCMALLOC_PGHO_EXPERIMENT",
    "tcmalloc.experiment.TCMALLOC_REUSE_SIZE_CLASSES_ABLATION",
    "tcmalloc.experiment.TCMALLOC_SONIC_MADV_NOHUGEPAGE_REGIONS",
    "tcmalloc.experiment.TEST_ONLY_L3_AWARE",
    "tcmalloc.experiment.TEST_ONLY_MM_VCPU",
    "tcmalloc.experiment.TEST_ONLY_TCMALLOC_HEAP_PARTITIONING",
    "tcmalloc.experiment.TEST_ONLY_TCMALLOC_POW2_SIZECLASS",
    "tcmalloc.experiment.TEST_ONLY_TCMALLOC_RELEASE_STALE_PAGES",
    "tcmalloc.experiment.TEST_ONLY_TCMALLOC_SHARDED_TRANSFER_CACHE",
    "tcmalloc.experiment.TEST_ONLY_TCMALLOC_SUBRELEASE_UNBACKED_PAGES",
};
constexpr std::string_view kWritable[] = {
    "tcmalloc.max_total_thread_cache_bytes",
    "tcmalloc.min_per_thread_cache_bytes",
    "tcmalloc.aggressive_memory_decommit",
    "tcmalloc.heap_limit_mb",
    "tcmalloc.sample_parameter",
};

uint64_t Get(std::string_view name) {
  const Property* property = FindProperty(name);
  EXPECT_NE(property, nullptr) << name;
  Moment moment;
  return property != nullptr ? property->get(moment) : 0;
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
    EXPECT_TRUE(MeaningOf(property).ends_with('.')) << property.name;
  }
  std::set<std::string_view> expected(std::begin(kReadable), std::end(kReadable));
  expected.insert(std::begin(kWritable), std::end(kWritable));
  expected.insert(std::begin(kAlwaysZero), std::end(kAlwaysZero));
  EXPECT_EQ(names, expected);
  for (const std::string_view name : kReadable) EXPECT_EQ(FindProperty(name)->set, nullptr) << name;
  for (const std::string_view name : kAlwaysZero) {
    EXPECT_EQ(Get(name), 0u) << name;
    EXPECT_EQ(FindProperty(name)->set, nullptr) << name;
  }
  for (const std::string_view name : kWritable) EXPECT_NE(FindProperty(name)->set, nullptr) << name;
}

TEST_F(PropertiesTest, OtherNamesAreNotFound) {
  for (const std::string_view name : {"", "generic.heap_siz", "generic.heap_sizes", "heap_size"}) {
    EXPECT_EQ(FindProperty(name), nullptr) << name;
  }
}

TEST_F(PropertiesTest, EveryFieldIsAProperty) {
  SlowPath slow_path;
  for (const Field& field : Fields()) {
    uint64_t value = 0;
    const std::string name = std::string(kFieldPrefix) + std::string(field.name);
    EXPECT_TRUE(GetProperty(name, &value)) << name;
    EXPECT_EQ(value, field.value(CurrentStatistics())) << name;
    EXPECT_FALSE(SetProperty(name, 0)) << name;
  }
  uint64_t value = 7;
  EXPECT_FALSE(GetProperty(kFieldPrefix, &value));
  EXPECT_FALSE(GetProperty("in_use", &value));
  EXPECT_EQ(value, 7u);
}

TEST_F(PropertiesTest, PartsSumUpToTheHeap) {
  std::vector<void*> blocks;
  for (size_t size = 1; size < 2 * kMiB; size += size / 4 + 1) blocks.push_back(Allocate(size));
  for (size_t i = 0; i < blocks.size(); i += 2) Deallocate(blocks[i]);
  EXPECT_EQ(Get("generic.heap_size") + Get("tcmalloc.pageheap_unmapped_bytes"),
            Get("tcmalloc.pageheap_total_reserve_bytes"));
  EXPECT_EQ(Get("generic.heap_size"),
            Get("generic.current_allocated_bytes") + Get("tcmalloc.central_cache_free_bytes") +
                Get("tcmalloc.transfer_cache_free_bytes") +
                Get("tcmalloc.thread_cache_free_bytes") + Get("tcmalloc.pageheap_free_bytes"));
  EXPECT_EQ(Get("tcmalloc.central_cache_free_bytes"), Get("tcmalloc.central_cache_free"));
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

// The parts of what was released, as they grow since this was made.
class Released {
 public:
  Released() { Read(parts_); }

  // That since then so much went back for one of kCauses, and nothing for the others.
  void Expect(std::string_view only, uint64_t least) {
    uint64_t now[kCount];
    Read(now);
    for (size_t i = 0; i < kCount; ++i) {
      const uint64_t grown = now[i] - parts_[i];
      if (kCauses[i] == only) {
        EXPECT_GE(grown, least) << only;
      } else {
        EXPECT_EQ(grown, 0u) << kCauses[i];
      }
      parts_[i] = now[i];
    }
  }

 private:
  static constexpr std::string_view kCauses[] = {
      "tcmalloc.num_released_release_memory_to_system_bytes",
      "tcmalloc.num_released_process_background_actions_bytes",
      "tcmalloc.num_released_soft_limit_exceeded_bytes",
      "tcmalloc.num_released_hard_limit_exceeded_bytes",
      "tcmalloc.statistics.released_by_allocator",
  };
  static constexpr size_t kCount = std::size(kCauses);

  static void Read(uint64_t (&parts)[kCount]) {
    uint64_t sum = 0;
    for (size_t i = 0; i < kCount; ++i) {
      EXPECT_TRUE(GetProperty(kCauses[i], &parts[i])) << kCauses[i];
      sum += parts[i];
    }
    EXPECT_EQ(sum, Get("tcmalloc.num_released_total_bytes"));
  }

  uint64_t parts_[kCount];
};

// A heap that gives nothing back of itself, and has this much free.
class ReleasePropertiesTest : public PropertiesTest {
 protected:
  static constexpr size_t kFree = 64 * kMiB;

  ReleasePropertiesTest() {
    heap.SetReleaseRate(0);
    MakeFree();
  }
  ~ReleasePropertiesTest() override { heap.SetReleaseRate(1); }

  // The program that releases it has the cause for itself.
  static void MakeFree() {
    ReleaseFreeSpans(SIZE_MAX);
    Deallocate(Allocate(kFree));
  }
};

TEST_F(ReleasePropertiesTest, ForTheProgram) {
  Released released;
  ReleaseFreeSpans(1);
  released.Expect("tcmalloc.num_released_release_memory_to_system_bytes", 1);
  ReleaseFreeMemory();
  released.Expect("tcmalloc.num_released_release_memory_to_system_bytes", kFree / 2);
}

TEST_F(ReleasePropertiesTest, InTheBackground) {
  Released released;
  heap.housekeeping().set_release_speed(UINT64_MAX);
  // Time has to pass on the system's clock, any at all.
  while (Get("tcmalloc.pageheap_free_bytes") > 0) heap.housekeeping().RunAll();
  heap.housekeeping().set_release_speed(0);
  released.Expect("tcmalloc.num_released_process_background_actions_bytes", kFree);
}

TEST_F(ReleasePropertiesTest, ForTheSoftLimit) {
  constexpr std::string_view kShrinks = "tcmalloc.successful_shrinks_after_soft_limit_hit";
  Released released;
  const uint64_t hits = Get("tcmalloc.soft_limit_hits");
  const uint64_t shrinks = Get(kShrinks);
  heap.SetSoftLimit(Get("generic.heap_size") - 10 * kMiB);
  heap.FollowLimits(nullptr);
  released.Expect("tcmalloc.num_released_soft_limit_exceeded_bytes", 10 * kMiB);
  EXPECT_EQ(Get("tcmalloc.soft_limit_hits"), hits + 1);
  EXPECT_EQ(Get(kShrinks), shrinks + 1);
  // Of what is in use nothing can be released.
  void* const block = Allocate(kFree);
  heap.SetSoftLimit(kMiB);
  heap.FollowLimits(nullptr);
  EXPECT_EQ(Get("tcmalloc.soft_limit_hits"), hits + 2);
  EXPECT_EQ(Get(kShrinks), shrinks + 1);
  heap.SetSoftLimit(0);
  Deallocate(block);
}

TEST_F(ReleasePropertiesTest, ForTheHardLimit) {
  constexpr std::string_view kShrinks = "tcmalloc.successful_shrinks_after_hard_limit_hit";
  Released released;
  const uint64_t hits = Get("tcmalloc.hard_limit_hits");
  const uint64_t shrinks = Get(kShrinks);
  heap.SetHardLimit(Get("generic.heap_size") + kFree);
  void* const block = Allocate(kFree + kFree / 2);
  EXPECT_NE(block, nullptr);
  released.Expect("tcmalloc.num_released_hard_limit_exceeded_bytes", kFree / 2);
  EXPECT_EQ(Get("tcmalloc.hard_limit_hits"), hits + 1);
  EXPECT_EQ(Get(kShrinks), shrinks + 1);
  EXPECT_EQ(Allocate(4 * kFree), nullptr);
  EXPECT_GT(Get("tcmalloc.hard_limit_hits"), hits + 1);
  EXPECT_EQ(Get(kShrinks), shrinks + 1);
  heap.SetHardLimit(0);
  Deallocate(block);
}

TEST_F(ReleasePropertiesTest, ByTheAllocator) {
  Released released;
  Set("tcmalloc.aggressive_memory_decommit", 1);
  Deallocate(Allocate(kFree));
  Set("tcmalloc.aggressive_memory_decommit", 0);
  released.Expect("tcmalloc.statistics.released_by_allocator", kFree);
}

TEST_F(ReleasePropertiesTest, ThePeakStaysWhenItIsOver) {
  const uint64_t before = Get("generic.current_allocated_bytes");
  const size_t size = Get("generic.peak_memory_usage") + 200 * kMiB;
  Deallocate(Allocate(size));
  ReleaseFreeMemory();
  EXPECT_EQ(Get("generic.current_allocated_bytes"), before);
  EXPECT_EQ(Get("generic.peak_memory_usage"), before + size);
  Deallocate(Allocate(size / 2));
  EXPECT_EQ(Get("generic.peak_memory_usage"), before + size);
}

// Every other one of many blocks is free when a larger one takes the heap to its peak.
TEST_F(ReleasePropertiesTest, FragmentationIsThatOfThePeak) {
  ReleaseFreeMemory();
  const size_t bytes = 2 * Get("generic.peak_memory_usage") + 200 * kMiB;
  std::vector<void*> blocks(bytes / kMiB);
  for (void*& block : blocks) block = Allocate(kMiB);
  EXPECT_LE(Get("generic.realized_fragmentation"), 3u);
  for (size_t i = 0; i < blocks.size(); i += 2) Deallocate(blocks[i]);
  void* const large = Allocate(bytes / 2);
  EXPECT_NEAR(static_cast<double>(Get("generic.peak_memory_usage")), static_cast<double>(bytes),
              static_cast<double>(bytes) / 50);
  EXPECT_NEAR(static_cast<double>(Get("generic.realized_fragmentation")), 50, 3);
  Deallocate(large);
  for (size_t i = 1; i < blocks.size(); i += 2) Deallocate(blocks[i]);
  EXPECT_NEAR(static_cast<double>(Get("generic.realized_fragmentation")), 50, 3);
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

TEST_F(PropertiesTest, TheTotalOfThreadCachesGoesDownToTheLeastThatWasSetForOne) {
  constexpr std::string_view kTotal = "tcmalloc.max_total_thread_cache_bytes";
  constexpr std::string_view kLeast = "tcmalloc.min_per_thread_cache_bytes";
  const uint64_t before = Get(kLeast);
  EXPECT_EQ(Set(kLeast, 32 << 10), 32u << 10);
  EXPECT_EQ(Set(kTotal, 0), 32u << 10);
  EXPECT_EQ(Set(kTotal, 32 * kMiB), 32 * kMiB);
  EXPECT_EQ(Set(kLeast, kMiB), kMiB);
  EXPECT_EQ(Set(kTotal, 0), kMiB);
  EXPECT_EQ(Set(kTotal, 32 * kMiB), 32 * kMiB);
  EXPECT_EQ(Set(kLeast, before), before);
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
