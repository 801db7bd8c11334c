// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/recent_stacks.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace tcmalloc::testing {
namespace {

constexpr size_t kWords = 64;
constexpr uintptr_t kReturnAddress = 0x1234;

// A stack whose words a test chooses, and what a walk is said to have read of it.
class RecentStacksTest : public ::testing::Test {
 protected:
  RecentStacksTest() {
    for (size_t i = 0; i < kWords; ++i) words_[i] = 0x10'000 + i;
  }

  CallSite Site() const {
    return {.stack_pointer = reinterpret_cast<uintptr_t>(words_.data()),
            .frame_pointer = 0x77,
            .return_address = kReturnAddress};
  }

  void Read(size_t word) {
    reads_.reads[reads_.count++] = {.at = reinterpret_cast<uintptr_t>(&words_[word]),
                                    .value = words_[word]};
  }

  StackId Keep(uintptr_t frame) {
    void* const frames[] = {reinterpret_cast<void*>(frame)};
    return stacks_->Add(frames);
  }

  std::array<uintptr_t, kWords> words_;
  WalkReads reads_ = {};
  std::unique_ptr<StackTable> stacks_ = std::make_unique<StackTable>();
  std::unique_ptr<RecentStacks> recent_ = std::make_unique<RecentStacks>();
};

TEST_F(RecentStacksTest, FindsAStackWhileEachWordIsAsItWas) {
  for (const size_t word : {3, 9, 33, 63}) Read(word);
  const StackId stack = Keep(1);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), 0U);
  recent_->Add(Site(), reads_, stack, *stacks_);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), stack);
  for (const size_t word : {3, 9, 33, 63}) {
    ++words_[word];
    EXPECT_EQ(recent_->Find(Site(), *stacks_), 0U) << word;
    --words_[word];
  }
  EXPECT_EQ(recent_->Find(Site(), *stacks_), stack);
  ++words_[4];
  EXPECT_EQ(recent_->Find(Site(), *stacks_), stack) << "a word that no walk reads";
}

TEST_F(RecentStacksTest, LooksAtTheCallSite) {
  Read(3);
  const StackId stack = Keep(1);
  recent_->Add(Site(), reads_, stack, *stacks_);
  CallSite site = Site();
  ++site.frame_pointer;
  EXPECT_EQ(recent_->Find(site, *stacks_), stack) << "no frame was found by it";
  ++site.return_address;
  EXPECT_EQ(recent_->Find(site, *stacks_), 0U);
  site = Site();
  site.stack_pointer += sizeof(uintptr_t);
  EXPECT_EQ(recent_->Find(site, *stacks_), 0U);
}

TEST_F(RecentStacksTest, LooksAtTheFramePointerThatAWalkBeganWith) {
  reads_.reads[reads_.count++] = {.at = 0, .value = Site().frame_pointer};
  Read(3);
  const StackId stack = Keep(1);
  recent_->Add(Site(), reads_, stack, *stacks_);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), stack);
  CallSite site = Site();
  ++site.frame_pointer;
  EXPECT_EQ(recent_->Find(site, *stacks_), 0U);
}

TEST_F(RecentStacksTest, KeepsNoWalkThatIsNotKnownOrReachesFar) {
  const StackId stack = Keep(1);
  recent_->Add(Site(), reads_, stack, *stacks_);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), 0U);
  Read(3);
  reads_.reads[reads_.count++] = {.at = Site().stack_pointer + (uintptr_t{1} << 20), .value = 1};
  recent_->Add(Site(), reads_, stack, *stacks_);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), 0U);
}

TEST_F(RecentStacksTest, TellsCallersOfOneFunctionApart) {
  StackId stacks[2];
  for (uintptr_t i = 0; i < 2; ++i) {
    words_[3] = i;
    reads_.count = 0;
    Read(3);
    stacks[i] = Keep(1 + i);
    recent_->Add(Site(), reads_, stacks[i], *stacks_);
  }
  for (uintptr_t i = 0; i < 2; ++i) {
    words_[3] = i;
    EXPECT_EQ(recent_->Find(Site(), *stacks_), stacks[i]);
  }
}

// Each Find hands a reference out. When all are given back and others have taken the places, only
// those that are in places are left.
TEST_F(RecentStacksTest, KeepsCountOfReferences) {
  constexpr uintptr_t kStacks = 500;
  constexpr int kFinds = 200;
  Read(3);
  for (uintptr_t i = 0; i < kStacks; ++i) {
    const StackId stack = Keep(1 + i);
    words_[3] = i;
    reads_.reads[0].value = i;
    recent_->Add(Site(), reads_, stack, *stacks_);
    for (int n = 0; n < kFinds; ++n) {
      ASSERT_EQ(recent_->Find(Site(), *stacks_), stack);
      stacks_->Release(stack);
    }
    stacks_->Release(stack);
  }
  EXPECT_LE(stacks_->stats().stacks, 8U) << "as many as have the same call site";
}

TEST_F(RecentStacksTest, GivesWithoutTheTableWhatItHas) {
  Read(3);
  const StackId stack = Keep(1);
  recent_->Add(Site(), reads_, stack, *stacks_);
  int given = 0;
  while (recent_->TryFind(Site()) == stack) ++given;
  EXPECT_GT(given, 10);
  EXPECT_EQ(recent_->Find(Site(), *stacks_), stack) << "with references of the table";
  ++given;
  while (recent_->TryFind(Site()) == stack) ++given;
  EXPECT_GT(given, 20);
  stacks_->Release(stack, static_cast<uint32_t>(given));
  stacks_->Release(stack);
  EXPECT_TRUE(stacks_->HasOneReference(stack)) << "that of the memory";
}

TEST_F(RecentStacksTest, IsUsedByOneAtATime) {
  ASSERT_TRUE(recent_->TryClaim());
  EXPECT_FALSE(recent_->TryClaim());
  recent_->Release();
  EXPECT_TRUE(recent_->TryClaim());
  recent_->Release();
}

TEST_F(RecentStacksTest, AddsSeldomWhereNothingIsFound) {
  int added = 0;
  for (int i = 0; i < 8000; ++i) added += recent_->IsWorthAdding() ? 1 : 0;
  EXPECT_GE(added, 1000);
  EXPECT_LE(added, 1400);
}

TEST_F(RecentStacksTest, FindsAllWaysOfASet) {
  std::vector<StackId> kept;
  for (size_t i = 0; i < 8; ++i) {
    words_[3] = 0x5000 + i;
    reads_.count = 0;
    Read(3);
    kept.push_back(Keep(10 + i));
    recent_->Add(Site(), reads_, kept.back(), *stacks_);
  }
  for (size_t i = 0; i < 8; ++i) {
    words_[3] = 0x5000 + i;
    EXPECT_EQ(recent_->Find(Site(), *stacks_), kept[i]);
  }
}

TEST_F(RecentStacksTest, ComparesEachOfAnyNumberOfWords) {
  for (size_t count = 1; count <= 9; ++count) {
    const auto recent = std::make_unique<RecentStacks>();
    reads_.count = 0;
    for (size_t word = 0; word < count; ++word) Read(2 * word);
    const StackId stack = Keep(count);
    recent->Add(Site(), reads_, stack, *stacks_);
    EXPECT_EQ(recent->Find(Site(), *stacks_), stack) << count;
    for (size_t word = 0; word < count; ++word) {
      ++words_[2 * word];
      EXPECT_EQ(recent->Find(Site(), *stacks_), 0U) << count << ' ' << word;
      --words_[2 * word];
    }
  }
}

}  // namespace
}  // namespace tcmalloc::testing
