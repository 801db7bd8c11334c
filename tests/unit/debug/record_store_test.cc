// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/record_store.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"

namespace tcmalloc {
namespace {

using testing::FakeMetadata;

class RecordStoreTest : public ::testing::Test {
 protected:
  // Takes a record, and makes it that of a live block.
  BlockRecord* Take(uint32_t place) {
    BlockRecord* record = store_.Take(place, arena_);
    if (record == nullptr) return nullptr;
    record->version.BeginChange();
    record->user = reinterpret_cast<char*>(record);
    record->version.EndChange(BlockState::kLive);
    return record;
  }
  std::multiset<const BlockRecord*> All() {
    std::multiset<const BlockRecord*> all;
    for (BlockRecord* chunk = store_.first_chunk(); chunk != nullptr;
         chunk = RecordStore::NextChunk(chunk)) {
      store_.ForEachIn(chunk, [&](const BlockRecord& record) { all.insert(&record); });
    }
    return all;
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<RecordStore> owned_ = std::make_unique<RecordStore>();
  RecordStore& store_ = *owned_;
};

TEST_F(RecordStoreTest, HasNothingAtFirst) { EXPECT_TRUE(All().empty()); }

TEST_F(RecordStoreTest, WalksThroughThoseThatWereTaken) {
  std::multiset<const BlockRecord*> taken;
  for (int i = 0; i < 5000; ++i) taken.insert(Take(static_cast<uint32_t>(i) % kPlaces));
  EXPECT_EQ(All(), taken);
}

class RecordChunksTest : public ::testing::Test {
 protected:
  static constexpr uintptr_t kChunk = uintptr_t{1} << 32;
  static const void* At(uintptr_t address) { return reinterpret_cast<const void*>(address); }

  std::unique_ptr<RecordChunks> owned_ = std::make_unique<RecordChunks>();
  RecordChunks& chunks_ = *owned_;
};

TEST_F(RecordChunksTest, HoldRecordsOfTheirOwnAlone) {
  chunks_.Add(At(kChunk));
  for (uintptr_t place = 0; place < RecordChunks::kChunkBytes; place += 16) {
    ASSERT_EQ(chunks_.Hold(At(kChunk + place)), place % sizeof(BlockRecord) == 0);
  }
  EXPECT_FALSE(chunks_.Hold(At(kChunk - sizeof(BlockRecord))));
  EXPECT_FALSE(chunks_.Hold(At(kChunk + RecordChunks::kChunkBytes)));
  EXPECT_FALSE(chunks_.Hold(nullptr));
}

// A block is in the table of blocks, or is not, by what Hold says when it begins.
TEST_F(RecordChunksTest, AChunkKeepsItsPlace) {
  constexpr uintptr_t kOther = kChunk + (uintptr_t{1} << 34);
  chunks_.Add(At(kChunk));
  chunks_.Add(At(kOther));
  EXPECT_TRUE(chunks_.Hold(At(kChunk)));
  EXPECT_FALSE(chunks_.Hold(At(kOther)));
}

TEST_F(RecordStoreTest, UsesRecordsAgainWhicheverPlaceGaveThemBack) {
  std::vector<BlockRecord*> taken;
  size_t used = 0;
  for (int round = 0; round < 10; ++round) {
    for (int i = 0; i < 3000; ++i) taken.push_back(Take(0));
    for (BlockRecord* record : taken) store_.Give(round % 2 == 0 ? 1 : kOwnPlaces, record);
    taken.clear();
    EXPECT_TRUE(All().empty());
    if (round == 0) used = arena_.stats().used_bytes;
  }
  EXPECT_EQ(arena_.stats().used_bytes, used);
}

// Who has seen a version of a record may not take it for the block that it had then.
TEST_F(RecordStoreTest, AVersionDoesNotComeAgain) {
  BlockRecord* record = Take(0);
  const uint32_t seen = record->version.Current();
  EXPECT_FALSE(record->version.HasChangedSince(seen));
  store_.Give(0, record);
  ASSERT_EQ(Take(0), record);
  EXPECT_EQ(record->version.state(), BlockState::kLive);
  EXPECT_TRUE(record->version.HasChangedSince(seen));
  EXPECT_FALSE(record->version.TryBeginChange(seen));
  EXPECT_TRUE(record->version.TryBeginChange(record->version.Current()));
}

TEST_F(RecordStoreTest, FailsWithoutMemoryAndGoesOnWithIt) {
  metadata_.exhausted = true;
  EXPECT_EQ(Take(0), nullptr);
  EXPECT_EQ(Take(kOwnPlaces), nullptr);
  metadata_.exhausted = false;
  EXPECT_NE(Take(0), nullptr);
}

TEST_F(RecordStoreTest, ServesThreadsAtOnce) {
  constexpr size_t kEach = 10'000;
  std::vector<std::vector<BlockRecord*>> kept(8);
  std::vector<std::thread> threads;
  for (uint32_t t = 0; t < kept.size(); ++t) {
    threads.emplace_back([&, t] {
      const uint32_t place = t % 2 == 0 ? t : kOwnPlaces + t;
      for (size_t i = 0; i < kEach; ++i) {
        BlockRecord* record = Take(place);
        i % 2 == 0 ? store_.Give(place, record) : kept[t].push_back(record);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::multiset<const BlockRecord*> all;
  for (const std::vector<BlockRecord*>& of_one : kept) all.insert(of_one.begin(), of_one.end());
  EXPECT_EQ(All(), all);
}

}  // namespace
}  // namespace tcmalloc
