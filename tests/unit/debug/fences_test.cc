// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/fences.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace tcmalloc {
namespace {

// A block of `size` bytes in a buffer with room for its fences.
class FencesTest : public ::testing::Test {
 protected:
  const BlockRecord& Fenced(size_t size, size_t offset) {
    memory_.assign(size + 4 * kMostFenceBytes, 0);
    block_ = {};
    block_.size = size;
    const size_t front = kFrontBytes + offset;
    block_.SetPlace(memory_.data(), front + size + 40, memory_.data() + front);
    WriteFences(block_);
    std::memset(block_.user, kFreshByte, size);
    return block_;
  }

  BlockRecord block_;
  std::vector<char> memory_;
};

TEST_F(FencesTest, WholeFencesShowNoDamage) {
  for (size_t size = 0; size < 70; ++size) {
    for (size_t offset : {0, 16, 48, 4096, 8192}) {
      const BlockRecord& block = Fenced(size, offset);
      ASSERT_EQ(FindDamageBefore(block), nullptr);
      ASSERT_EQ(FindDamageAfter(block), nullptr);
      ASSERT_TRUE(AreFencesWhole(block));
    }
  }
}

// As behind a block with pages of its own, which ends at one without access.
TEST_F(FencesTest, LooksAtNoByteBehindTheMemoryOfABlock) {
  for (size_t room = 0; room < 40; ++room) {
    const BlockRecord& block = Fenced(21, 16);
    block_.SetPlace(block.base(), kFrontBytes + 16 + 21 + room, block.user);
    char* end = block.base() + block.total;
    std::memset(end, 0, 64);
    EXPECT_TRUE(AreFencesWhole(block)) << room;
    for (char* byte = block.end(); byte < end; ++byte) {
      *byte = static_cast<char>(*byte ^ 1);
      EXPECT_FALSE(AreFencesWhole(block)) << room;
      *byte = static_cast<char>(*byte ^ 1);
    }
  }
}

TEST_F(FencesTest, EveryByteOfAFenceCounts) {
  const BlockRecord& block = Fenced(21, 16);
  for (char* byte = FrontFence(block); byte < BackFenceEnd(block); ++byte) {
    if (byte >= block.user && byte < block.end()) continue;
    *byte = static_cast<char>(*byte ^ 1);
    EXPECT_EQ(FindDamageBefore(block), byte < block.user ? byte : nullptr);
    EXPECT_EQ(FindDamageAfter(block), byte >= block.end() ? byte : nullptr);
    EXPECT_FALSE(AreFencesWhole(block));
    *byte = static_cast<char>(*byte ^ 1);
  }
}

TEST_F(FencesTest, NoFillingPassesForAFence) {
  for (int filling = 0; filling < 256; ++filling) {
    const BlockRecord& block = Fenced(8, 0);
    std::memset(block.end(), filling, 2);
    EXPECT_NE(FindDamageAfter(block), nullptr) << filling;
  }
}

TEST_F(FencesTest, FillsJustTheBytesOfABlock) {
  for (size_t size = 0; size < 200; ++size) {
    std::vector<char> memory(size + 64, 0);
    FillWith<kFreedByte>(memory.data() + 32, size);
    for (size_t i = 0; i < memory.size(); ++i) {
      const bool inside = i >= 32 && i < 32 + size;
      ASSERT_EQ(static_cast<unsigned char>(memory[i]), inside ? kFreedByte : 0) << size << ' ' << i;
    }
  }
}

TEST_F(FencesTest, FindsTheFirstByteThatIsNotFreed) {
  std::vector<char> bytes(100, static_cast<char>(kFreedByte));
  for (size_t begin = 0; begin < 9; ++begin) {
    EXPECT_EQ(FindOverwritten(&bytes[begin], bytes.data() + bytes.size()), nullptr);
    for (size_t at = begin; at < bytes.size(); ++at) {
      bytes[at] = 0;
      EXPECT_EQ(FindOverwritten(&bytes[begin], bytes.data() + bytes.size()), &bytes[at]);
      bytes[at] = static_cast<char>(kFreedByte);
    }
  }
}

TEST_F(FencesTest, FillsAndLooksAtBothEndsOfAHugeBlock) {
  constexpr size_t kEnd = kMostFilled / 2;
  const BlockRecord& block = Fenced(2 * kMostFilled, 0);
  char* const first = block.user;
  char* const end = block.end();
  FillBlock<kFreedByte>(block);
  EXPECT_EQ(FindOverwritten(block), nullptr);
  EXPECT_EQ(FilledUntil(block, first), first + kEnd);
  EXPECT_EQ(FilledUntil(block, end - 1), end);
  for (char* byte : {first, first + kEnd - 1, end - kEnd, end - 1}) {
    *byte = 0;
    EXPECT_EQ(FindOverwritten(block), byte);
    *byte = static_cast<char>(kFreedByte);
  }
  for (char* byte : {first + kEnd, end - kEnd - 1}) {
    EXPECT_EQ(static_cast<unsigned char>(*byte), kFreshByte);
    *byte = 0;
    EXPECT_EQ(FindOverwritten(block), nullptr);
  }
}

TEST_F(FencesTest, FindsAByteThatIsNotFreedInALongBlock) {
  for (const size_t size : {255, 256, 257, 319, 1000}) {
    std::vector<char> bytes(size, static_cast<char>(kFreedByte));
    EXPECT_TRUE(IsAllFreed(bytes.data(), bytes.data() + size));
    for (char& byte : bytes) {
      byte = 0;
      EXPECT_FALSE(IsAllFreed(bytes.data(), bytes.data() + size)) << &byte - bytes.data();
      byte = static_cast<char>(kFreedByte);
    }
  }
}

TEST_F(FencesTest, AWholeSealNamesItsRecord) {
  const BlockRecord& block = Fenced(77, 0);
  Seal seal = Seal::Read(block.user);
  EXPECT_EQ(seal.size, 77u);
  EXPECT_EQ(seal.ClaimedRecord(block.user), &block);
  EXPECT_NE(seal.ClaimedRecord(block.user + 16), &block);
  seal.size = 78;
  EXPECT_NE(seal.ClaimedRecord(block.user), &block);
}

// So that one that was copied with its block to another address is no good one.
TEST_F(FencesTest, ASealIsThatOfOneRecord) {
  const BlockRecord copy = Fenced(77, 0);
  EXPECT_FALSE(AreFencesWhole(copy));
  EXPECT_TRUE(AreFencesWhole(block_));
}

}  // namespace
}  // namespace tcmalloc
