// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/metadata_arena.h"

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"
#include "fakes/filled.h"
#include "pages/span.h"

namespace tcmalloc::testing {
namespace {

class MetadataArenaTest : public ::testing::Test {
 protected:
  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
};

TEST_F(MetadataArenaTest, MemoryIsZeroAlignedAndDisjoint) {
  std::mt19937_64 random(1);
  std::map<uintptr_t, size_t> blocks;  // begin to bytes
  size_t used = 0;
  for (int i = 0; i < 2000; ++i) {
    const size_t bytes = 1 + random() % (random() % 50 == 0 ? 400'000 : 500);
    const size_t alignment = size_t{1} << random() % 13;
    char* memory = static_cast<char*>(arena_.Allocate(bytes, alignment));
    ASSERT_NE(memory, nullptr);
    const auto begin = reinterpret_cast<uintptr_t>(memory);
    ASSERT_EQ(begin % alignment, 0u);
    ASSERT_TRUE(IsZero(memory, bytes));
    std::memset(memory, 0x5a, bytes);
    const auto after = blocks.lower_bound(begin);
    if (after != blocks.end()) {
      ASSERT_LE(begin + bytes, after->first);
    }
    if (after != blocks.begin()) {
      const auto before = std::prev(after);
      ASSERT_LE(before->first + before->second, begin);
    }
    blocks[begin] = bytes;
    used += bytes;
  }
  EXPECT_EQ(arena_.stats().used_bytes, used);
  EXPECT_GE(arena_.stats().mapped_bytes, used);
}

TEST_F(MetadataArenaTest, CountsThePageThatALargeAlignmentLeaves) {
  constexpr size_t kPage = 4096;
  constexpr size_t kSmall = 64;
  constexpr size_t kLarge = size_t{64} << 10;
  bool left_some = false;
  for (int i = 0; i < 4; ++i) {
    const size_t before = arena_.stats().used_bytes;
    const auto small = reinterpret_cast<uintptr_t>(arena_.Allocate(kSmall, kSmall));
    const size_t mapped = arena_.stats().mapped_bytes;
    const auto large = reinterpret_cast<uintptr_t>(arena_.Allocate(kLarge, kLarge));
    ASSERT_NE(small, 0u);
    ASSERT_NE(large, 0u);
    const uintptr_t page_end = small / kPage * kPage + kPage;
    // Not where the large block begins the next page, or lies in another chunk.
    const bool leaves = large > page_end && arena_.stats().mapped_bytes == mapped;
    const size_t left = leaves ? page_end - small - kSmall : 0;
    EXPECT_EQ(arena_.stats().used_bytes - before, kSmall + kLarge + left);
    left_some = left_some || leaves;
  }
  EXPECT_TRUE(left_some);
}

// Where the source has no more than that, and aligns it to a page.
TEST_F(MetadataArenaTest, LargeAlignmentsEndInTheChunk) {
  constexpr size_t kBytes = size_t{64} << 10;
  metadata_.is_aligned = false;
  metadata_.most = 3 * kBytes;
  for (int i = 0; i < 4; ++i) {
    const auto* memory = static_cast<const char*>(arena_.Allocate(kBytes, kBytes));
    ASSERT_NE(memory, nullptr);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory) % kBytes, 0u);
    EXPECT_TRUE(metadata_.Owns(memory, kBytes)) << i;
  }
  metadata_.most = kBytes;
  EXPECT_EQ(arena_.Allocate(kBytes, kBytes), nullptr);
}

TEST_F(MetadataArenaTest, SmallRecordsShareAChunk) {
  for (int i = 0; i < 1000; ++i) ASSERT_NE(arena_.Allocate(64, 8), nullptr);
  EXPECT_EQ(metadata_.calls(), 1u);
}

TEST_F(MetadataArenaTest, RecordsComeInAddressOrder) {
  char* previous = static_cast<char*>(arena_.Allocate(64, 64));
  for (int i = 0; i < 100; ++i) {
    char* next = static_cast<char*>(arena_.Allocate(64, 64));
    EXPECT_EQ(next, previous + 64);
    previous = next;
  }
}

TEST_F(MetadataArenaTest, NullWhenTheSourceHasNoneAndGoodAgainAfterwards) {
  metadata_.exhausted = true;
  EXPECT_EQ(arena_.Allocate(64, 8), nullptr);
  EXPECT_EQ(arena_.stats().mapped_bytes, 0u);
  metadata_.exhausted = false;
  EXPECT_NE(arena_.Allocate(64, 8), nullptr);
  metadata_.exhausted = true;
  EXPECT_NE(arena_.Allocate(64, 8), nullptr) << "there was room in the chunk";
  EXPECT_EQ(arena_.Allocate(size_t{1} << 20, 8), nullptr);
  EXPECT_NE(arena_.Allocate(64, 8), nullptr) << "there still is";
}

// Regions of many sizes, which are used up before there is nothing more.
TEST_F(MetadataArenaTest, WhatIsReservedServesWhenTheSourceHasNone) {
  constexpr size_t kStep = size_t{100} << 10;
  constexpr size_t kMost = 20 * kStep;
  for (size_t bytes = kStep; bytes <= kMost; bytes += kStep) arena_.Reserve(bytes);
  const size_t calls = metadata_.calls();
  arena_.Reserve(kMost);
  EXPECT_EQ(metadata_.calls(), calls) << "there is enough";
  ASSERT_NE(arena_.Allocate(64, 64), nullptr);
  EXPECT_EQ(metadata_.calls(), calls + 1) << "what is reserved stays while there is other memory";
  metadata_.exhausted = true;
  std::set<void*> records;
  for (size_t i = 0; i < kMost / 64; ++i) {
    void* record = arena_.Allocate(64, 64);
    ASSERT_NE(record, nullptr) << i;
    ASSERT_TRUE(IsZero(static_cast<char*>(record), 64));
    std::memset(record, 0x5a, 64);
    ASSERT_TRUE(records.insert(record).second);
  }
  arena_.Reserve(2 * kMost);
  while (arena_.Allocate(64, 64) != nullptr) {
  }
  EXPECT_LE(arena_.stats().used_bytes, arena_.stats().mapped_bytes);
}

TEST_F(MetadataArenaTest, WhatIsReservedIsNotForThoseWhoCanDoWithout) {
  constexpr size_t kReserved = size_t{128} << 10;
  arena_.Reserve(kReserved);
  metadata_.exhausted = true;
  EXPECT_EQ(arena_.AllocateUnreserved(64, 64), nullptr);
  ASSERT_NE(arena_.Allocate(64, 64), nullptr);
  EXPECT_EQ(arena_.AllocateUnreserved(64, 64), nullptr) << "one of the others has begun with it";
  size_t records = 1;
  while (arena_.Allocate(64, 64) != nullptr) ++records;
  EXPECT_GE(records, kReserved / 64 - 2);
}

TEST_F(MetadataArenaTest, WhatIsSpareLeavesWhatIsReserved) {
  constexpr size_t kReserved = size_t{128} << 10;
  arena_.Reserve(kReserved, 2 * kReserved);
  metadata_.exhausted = true;
  size_t spare = 0;
  while (arena_.AllocateSpare(1024, 8) != nullptr) spare += 1024;
  EXPECT_GE(spare, 2 * kReserved - 2048);
  EXPECT_EQ(arena_.AllocateUnreserved(64, 64), nullptr);
  size_t records = 0;
  while (arena_.Allocate(64, 64) != nullptr) ++records;
  EXPECT_GE(records, kReserved / 64 - 2);
}

// A chunk has room for many records, which those who can do without may take.
TEST_F(MetadataArenaTest, ReserveDoesNotCountTheRestOfAChunk) {
  constexpr size_t kReserved = size_t{128} << 10;
  ASSERT_NE(arena_.Allocate(64, 64), nullptr);
  arena_.Reserve(kReserved);
  metadata_.exhausted = true;
  while (arena_.AllocateUnreserved(64, 64) != nullptr) {
  }
  for (size_t i = 0; i < kReserved / 64 - 2; ++i) ASSERT_NE(arena_.Allocate(64, 64), nullptr) << i;
}

// Records of all sizes from regions that lie apart and side by side, some of them used in part.
TEST_F(MetadataArenaTest, RegionsOfTheReserveStayApartFromWhatWasTakenOfThem) {
  std::mt19937_64 random(3);
  std::map<uintptr_t, size_t> records;  // begin to bytes
  size_t reserved = 0;
  for (int round = 0; round < 300; ++round) {
    metadata_.exhausted = false;
    reserved = random() % (size_t{400} << 10);
    arena_.Reserve(reserved);
    metadata_.exhausted = true;
    for (size_t i = random() % 3000; i > 0; --i) {
      const size_t bytes = 8 + random() % (random() % 50 == 0 ? 5000 : 100);
      const size_t alignment = size_t{8} << random() % 6;
      void* record = arena_.Allocate(bytes, alignment);
      if (record == nullptr) continue;
      const auto begin = reinterpret_cast<uintptr_t>(record);
      ASSERT_EQ(begin % alignment, 0u);
      ASSERT_TRUE(IsZero(static_cast<char*>(record), bytes));
      std::memset(record, 0x5a, bytes);
      ASSERT_TRUE(records.emplace(begin, bytes).second);
    }
  }
  EXPECT_GT(records.size(), 10'000u);
  uintptr_t end = 0;
  for (const auto& [begin, bytes] : records) {
    ASSERT_LE(end, begin);
    end = begin + bytes;
  }
}

// Callers that can do without may ask for every block of the program.
TEST_F(MetadataArenaTest, ASourceThatRefusesIsAskedNowAndThen) {
  constexpr size_t kRequests = 10'000;
  metadata_.exhausted = true;
  for (size_t i = 0; i < kRequests; ++i) EXPECT_EQ(arena_.AllocateUnreserved(64, 8), nullptr);
  EXPECT_LE(metadata_.refusals(), kRequests / 10);
  metadata_.exhausted = false;
  int tries = 0;
  while (arena_.AllocateUnreserved(64, 8) == nullptr) ASSERT_LT(++tries, 1000);
  while (arena_.AllocateUnreserved(64, 8) != nullptr) metadata_.exhausted = true;
  metadata_.exhausted = false;
  EXPECT_NE(arena_.AllocateUnreserved(64, 8), nullptr) << "one refusal is not many";
}

// Others ask each time if nothing is reserved.
TEST_F(MetadataArenaTest, AnAnswerIsNeverLeftOutForThoseWhoCannotDoWithout) {
  metadata_.exhausted = true;
  for (int i = 0; i < 1000; ++i) EXPECT_EQ(arena_.AllocateUnreserved(64, 8), nullptr);
  metadata_.exhausted = false;
  EXPECT_NE(arena_.Allocate(64, 8), nullptr);
}

TEST_F(MetadataArenaTest, ThreadsGetDifferentMemory) {
  constexpr int kThreads = 4;
  constexpr int kRecords = 2000;
  std::vector<std::vector<void*>> records(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : records) {
    threads.emplace_back([this, &mine] {
      for (int i = 0; i < kRecords; ++i) mine.push_back(arena_.Allocate(48, 8));
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<void*> all;
  for (const auto& mine : records) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), size_t{kThreads} * kRecords);
  EXPECT_FALSE(all.contains(nullptr));
}

class MetadataPoolTest : public MetadataArenaTest {
 protected:
  MetadataPool<Span> pool_{arena_};
};

TEST_F(MetadataPoolTest, RecordsAreFreshWhenTheyAreNew) {
  Span* span = pool_.New();
  span->length = Length(7);
  span->state = Span::State::kLarge;
  pool_.Delete(span);
  Span* again = pool_.New();
  EXPECT_EQ(again, span);
  EXPECT_EQ(again->length, Length(0));
  EXPECT_EQ(again->state, Span::State::kUnused);
  EXPECT_FALSE(again->linked());
}

TEST_F(MetadataPoolTest, MemoryIsReservedForAsManyRecordsAsThereNeverWere) {
  constexpr size_t kRecords = 50'000;
  Span* const first = pool_.New();
  pool_.Delete(first);
  pool_.Reserve(kRecords);
  metadata_.exhausted = true;
  for (size_t i = 0; i < kRecords; ++i) ASSERT_NE(pool_.New(), nullptr) << i;
  const size_t mapped = arena_.stats().mapped_bytes;
  EXPECT_LE(mapped, kRecords * sizeof(Span) + (size_t{512} << 10) + (size_t{512} << 10));
}

TEST_F(MetadataPoolTest, RecordsAreReusedBeforeTheArenaIsAsked) {
  std::vector<Span*> spans;
  for (int i = 0; i < 100; ++i) spans.push_back(pool_.New());
  EXPECT_EQ(pool_.live(), 100u);
  const size_t used = arena_.stats().used_bytes;
  for (Span* span : spans) pool_.Delete(span);
  EXPECT_EQ(pool_.live(), 0u);
  std::set<Span*> again;
  for (int i = 0; i < 100; ++i) again.insert(pool_.New());
  EXPECT_EQ(again, std::set<Span*>(spans.begin(), spans.end()));
  EXPECT_EQ(arena_.stats().used_bytes, used);
}

// Stale entries of the page map point at records that were given back, and must see their state.
TEST_F(MetadataPoolTest, ARecordThatWasGivenBackKeepsItsState) {
  Span* span = pool_.New();
  const auto& state = span->state;
  span->state = Span::State::kLarge;
  EXPECT_TRUE(state == Span::State::kLarge);
  span->state = Span::State::kUnused;
  pool_.Delete(span);
  EXPECT_TRUE(state == Span::State::kUnused);
}

TEST_F(MetadataPoolTest, NullWithoutMemory) {
  metadata_.exhausted = true;
  EXPECT_EQ(pool_.New(), nullptr);
  EXPECT_EQ(pool_.live(), 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
