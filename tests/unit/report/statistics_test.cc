// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one, so that nothing else changes it.

#include <gtest/gtest.h>
#include <malloc.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "fakes/thread_sanitizer.h"
#include "heap/heap.h"
#include "report/current_statistics.h"
#include "report/fields.h"
#include "report/mallinfo.h"
#include "report/report.h"
#include "report/statistics_sums.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {
namespace {

struct Snapshot : Statistics {
  AllSizeClassStatistics classes;
};

Snapshot Now() {
  SlowPath slow_path;
  EXPECT_FALSE(slow_path.reentrant());
  Snapshot now;
  static_cast<Statistics&>(now) = CurrentStatistics(&now.classes);
  return now;
}

// The equations of statistics.h.
void ExpectSumsHold(const Snapshot& now) {
  EXPECT_EQ(now.mapped, now.in_use + now.page_heap_free + now.page_heap_returned +
                            now.central_free + now.transfer_free + now.thread_free + now.cpu_free +
                            now.untouched);
  uint64_t in_use = now.large_in_use;
  uint64_t thread_free = 0;
  uint64_t external = 0;
  for (const SizeClassStatistics& of : now.classes) {
    EXPECT_LE(of.object_bytes * (of.in_use + of.free() + of.untouched), of.span_bytes);
    EXPECT_LE(of.tail_bytes(), of.span_bytes / 2);
    in_use += of.in_use * of.object_bytes;
    thread_free += of.thread_free * of.object_bytes;
    external += of.external_bytes();
  }
  EXPECT_EQ(now.in_use, in_use);
  EXPECT_EQ(now.thread_free, thread_free);
  EXPECT_EQ(now.central_free, external);
  for (const Field& field : Fields()) {
    if (field.group != FieldGroup::kMemory) continue;
    EXPECT_LE(field.value(now), now.mapped + now.metadata) << field.name;
  }
}

class StatisticsTest : public ::testing::Test {
 protected:
  StatisticsTest() { heap.EnsureInitialized(); }
};

size_t ClassesMade() {
  size_t classes = 0;
  heap.lists().ForEach([&classes](uint8_t, Transfer&, Central&) { ++classes; });
  return classes;
}

TEST_F(StatisticsTest, LargeBlocksCountAsAllocated) {
  constexpr uint64_t kBlocks = 5;
  const Statistics before = Now();
  for (uint64_t i = 0; i < kBlocks; ++i) Deallocate(Allocate(3 * kMiB));
  const Statistics after = Now();
  EXPECT_GE(after.allocated - before.allocated, kBlocks * 3 * kMiB);
  EXPECT_LT(after.allocated - before.allocated, (kBlocks + 1) * 3 * kMiB);
  EXPECT_GE(after.allocations - before.allocations, kBlocks);
}

// One byte more than a class has becomes a block of the next class.
TEST_F(StatisticsTest, NoLessIsAllocatedThanInUse) {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Allocate(4097));
  const Statistics now = Now();
  EXPECT_GE(now.allocated, now.in_use);
  for (void* block : blocks) Deallocate(block);
}

TEST_F(StatisticsTest, ClassesThatWereNeverUsedCountAsEmpty) {
  const size_t made = ClassesMade();
  ASSERT_LT(made, kSizeClassCount - 1);
  const Snapshot now = Now();
  ExpectSumsHold(now);
  EXPECT_EQ(ClassesMade(), made);
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    EXPECT_EQ(now.classes[c].object_bytes, kSizeClasses[c].size);
    if (heap.lists().Find(static_cast<uint8_t>(c)) == nullptr) {
      EXPECT_EQ(now.classes[c].span_bytes, 0u);
    }
  }
}

TEST_F(StatisticsTest, BlocksAreCountedInTheirClass) {
  constexpr size_t kBlocks = 1000;
  const uint8_t c = SizeClassFor(1000);
  const Snapshot before = Now();
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = Allocate(1000);
  void* const large = Allocate(3 * kMiB);
  const Snapshot within = Now();
  ExpectSumsHold(within);
  const SizeClassStatistics& of = within.classes[c];
  EXPECT_EQ(of.in_use, before.classes[c].in_use + kBlocks);
  EXPECT_EQ(of.most_internal_bytes(), of.in_use * (of.object_bytes - of.least_bytes));
  EXPECT_EQ(within.large_in_use, before.large_in_use + 3 * kMiB);
  EXPECT_EQ(within.in_use, before.in_use + kBlocks * of.object_bytes + 3 * kMiB);
  EXPECT_GE(within.most_internal, kBlocks * (of.object_bytes - 1000));

  for (void* block : blocks) Deallocate(block);
  Deallocate(large);
  const Snapshot after = Now();
  ExpectSumsHold(after);
  EXPECT_EQ(after.in_use, before.in_use);
  EXPECT_EQ(after.large_in_use, before.large_in_use);
}

// Any figures that parts of the allocator may tell, each of a moment of its own.
TEST_F(StatisticsTest, SumsHoldWhateverTheMoments) {
  std::minstd_rand random(7);
  const auto below = [&random](uint64_t bound) { return random() % (bound + 1); };
  for (int round = 0; round < 2000 && !HasFailure(); ++round) {
    Snapshot statistics;
    uint64_t small_bytes = 0;
    for (size_t i = 1; i < kSizeClassCount; ++i) {
      const auto c = static_cast<uint8_t>(i);
      CentralStats central;
      central.spans = below(20);
      central.span_bytes = central.spans * kSizeClasses[c].span_bytes();
      const size_t objects = central.spans * kSizeClasses[c].objects;
      central.allocated_objects = below(objects);
      central.uncarved_objects = below(objects - central.allocated_objects);
      central.untouched_objects = below(central.uncarved_objects);
      central.free_objects = objects - central.allocated_objects - central.uncarved_objects;
      const uint64_t most = round % 2 == 0 ? objects / 3 : 2 * objects;
      statistics.classes[c] = CombineSizeClass(c, central, {below(most), below(most), below(most)});
      AddUp(statistics.classes[c], &statistics);
      small_bytes += statistics.classes[c].span_bytes;
    }
    PageHeapStats pages;
    pages.system = Length(below(size_t{1} << (round % 24)));
    pages.free = Length(below(pages.system.pages()));
    pages.returned = Length(below((pages.system - pages.free).pages()));
    pages.in_transit = Length(below((pages.system - pages.free - pages.returned).pages()));
    AddUp(pages, small_bytes, &statistics);
    ExpectSumsHold(statistics);
    EXPECT_EQ(statistics.mapped, std::max(small_bytes, pages.system.bytes()));
  }
}

TEST_F(StatisticsTest, SumsHoldWhileThreadsAllocate) {
  // The fast path changes them by instructions that are not atomic.
  if (kThreadSanitizer) GTEST_SKIP() << "the lengths of other threads' lists are estimates";
  constexpr int kThreads = 4;
  constexpr int kSnapshots = 500;
  std::atomic<bool> stop{false};
  std::atomic<int> running{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&stop, &running, t] {
      std::vector<void*> blocks(500);
      for (size_t i = static_cast<size_t>(t); !stop.load(std::memory_order_relaxed); ++i) {
        void*& block = blocks[i * 7 % blocks.size()];
        Deallocate(block);
        block = Allocate(i % 64 == 0 ? i % 5 * 300'000 : i * i % 9000);
        if (i == blocks.size()) running.fetch_add(1);
      }
      for (void* block : blocks) Deallocate(block);
    });
  }
  while (running.load() < kThreads) std::this_thread::yield();
  for (int i = 0; i < kSnapshots && !HasFailure(); ++i) ExpectSumsHold(Now());
  stop = true;
  for (std::thread& thread : threads) thread.join();
  ExpectSumsHold(Now());
}

TEST_F(StatisticsTest, FieldsHaveNamesOfTheirOwn) {
  std::set<std::string_view> names;
  for (const Field& field : Fields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
    EXPECT_TRUE(MeaningOf(field).ends_with('.')) << field.name;
    EXPECT_EQ(FindField(field.name), &field);
  }
  for (const auto& part : kMallinfoParts<struct mallinfo2>) {
    EXPECT_NE(FindField(part.field), nullptr) << part.field;
  }
  names.clear();
  for (const SizeClassField& field : SizeClassFields()) {
    EXPECT_TRUE(names.insert(field.name).second) << field.name;
  }
  EXPECT_EQ(FindField(""), nullptr);
  EXPECT_EQ(FindField("in_us"), nullptr);
}

class StringSink final : public TextSink {
 public:
  void Write(std::string_view more) override { text.append(more); }
  std::string text;
};

TEST_F(StatisticsTest, EveryFieldIsInEveryFormat) {
  void* const block = Allocate(100);
  StringSink text;
  StringSink xml;
  StringSink json;
  StringSink totals;
  WriteTextReport(text, 2);
  WriteXmlReport(xml);
  WriteJsonReport(json, Detail::kAll);
  WriteJsonReport(totals, Detail::kTotals);
  const auto expect_in = [](const std::string& report, const std::string& wanted) {
    EXPECT_NE(report.find(wanted), std::string::npos) << wanted;
  };
  for (const Field& field : Fields()) {
    const std::string name(field.name);
    if (!field.label.empty()) expect_in(text.text, std::string(field.label) + "\n");
    expect_in(xml.text, " name=\"" + name + "\" value=\"");
    expect_in(json.text, "\"" + name + "\":");
    expect_in(totals.text, "\"" + name + "\":");
  }
  for (const SizeClassField& field : SizeClassFields()) {
    const std::string name(field.name);
    expect_in(text.text, name);
    expect_in(xml.text, " " + name + "=\"");
    expect_in(json.text, "\"" + name + "\":");
  }
  EXPECT_EQ(totals.text.find('\n'), totals.text.size() - 1);
  EXPECT_LT(totals.text.size(), kMostJsonTotals / 2);
  Deallocate(block);
}

// In a signal handler that interrupted the slow path.
TEST_F(StatisticsTest, InsideTheSlowPathThereAreNone) {
  SlowPath interrupted;
  StringSink text;
  WriteTextReport(text, 2);
  EXPECT_EQ(text.text, "");
  WriteXmlReport(text);
  EXPECT_EQ(text.text, "<malloc version=\"1\">\n</malloc>\n");
  text.text.clear();
  WriteJsonReport(text, Detail::kAll);
  EXPECT_EQ(text.text, "{}\n");
  EXPECT_EQ(MakeMallinfo<struct mallinfo2>().arena, 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
