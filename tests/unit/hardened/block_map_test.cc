// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "hardened/block_map.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <thread>
#include <vector>

#include "base/random.h"
#include "size_class/size_classes.h"
#include "system/own_memory.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr BlockFamily kFamilies[] = {BlockFamily::kMalloc, BlockFamily::kNew,
                                     BlockFamily::kNewArray};

class BlockMapTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(map_.Initialize(Random())); }

  // Returns another number each time: maps stay, and each has a place of its own.
  static uint64_t Random() {
    static uint64_t random = 1;
    return random = NextRandom(random);
  }

  static void* At(uintptr_t address) { return reinterpret_cast<void*>(address); }

  BlockMap map_;
};

// Returns true if a block begins at an address whose state is one of these. Eight at a time, for
// there are a hundred million of them.
bool HasLiveBlock(const BlockMap::Byte* begin, const BlockMap::Byte* end) {
  static_assert(BlockMap::kLive == 0x80 && sizeof(BlockMap::Byte) == 1);
  constexpr uint64_t kLiveBits = 0x8080'8080'8080'8080;
  for (; end - begin >= 8; begin += 8) {
    uint64_t states = 0;
    std::memcpy(&states, begin, sizeof(states));
    if ((states & kLiveBits) != 0) return true;
  }
  return std::any_of(begin, end,
                     [](const BlockMap::Byte& state) { return state.load() >= BlockMap::kLive; });
}

TEST_F(BlockMapTest, CountsTheLeavesItUses) {
  constexpr size_t kBytesOfLeaf = size_t{4} << 20;  // of memory, of which a leaf has the states
  constexpr size_t kLeaves = 100;
  const size_t before = own_bytes.get();
  for (size_t i = 0; i < kLeaves; ++i) {
    ASSERT_NE(map_.Ensure(At(0x1'0000'0000 + i * kBytesOfLeaf)), nullptr);
  }
  const size_t used = own_bytes.get() - before;
  constexpr size_t kStates = kLeaves * kBytesOfLeaf / BlockMap::kGranule;
  EXPECT_GE(used, kStates);
  EXPECT_LE(used, kStates + kStates / 3);
  ASSERT_NE(map_.Ensure(At(0x1'0000'0010)), nullptr);
  EXPECT_EQ(own_bytes.get() - before, used);
}

TEST_F(BlockMapTest, NothingIsKnownOfAnyAddressAtFirst) {
  EXPECT_EQ(map_.Find(nullptr), nullptr);
  EXPECT_EQ(map_.Find(At(0x7000'1230)), nullptr);
  EXPECT_EQ(map_.Find(At(UINTPTR_MAX)), nullptr);
  EXPECT_EQ(map_.Find(At(UINTPTR_MAX << 4)), nullptr);
  EXPECT_EQ(map_.Find(At(uintptr_t{1} << kAddressBits)), nullptr);
}

TEST_F(BlockMapTest, MisalignedAddressesHaveNoState) {
  ASSERT_NE(map_.Ensure(At(0x7000'0000)), nullptr);
  EXPECT_NE(map_.Find(At(0x7000'0010)), nullptr);
  for (uintptr_t i = 1; i < 16; ++i) EXPECT_EQ(map_.Find(At(0x7000'0000 + i)), nullptr);
}

// The memory of the first block in a new part of the address space may have taken all that the
// process may map.
TEST_F(BlockMapTest, OnePartIsMappedAhead) {
  ASSERT_NE(map_.Ensure(At(0x7000'0000)), nullptr);
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void*, size_t, int, int, int, off_t) { return MAP_FAILED; };
  BlockMap::Byte* state = map_.Ensure(At(0x1'7000'0000));
  EXPECT_EQ(map_.Ensure(At(0x2'7000'0000)), nullptr);
  system_calls = saved;
  ASSERT_NE(state, nullptr);
  EXPECT_EQ(state, map_.Find(At(0x1'7000'0000)));
  EXPECT_EQ(state->load(), 0);
  EXPECT_NE(state, map_.Find(At(0x7000'0000)));
  EXPECT_NE(map_.Ensure(At(0x2'7000'0000)), nullptr);
}

TEST_F(BlockMapTest, HighAddressesHaveStatesToo) {
  constexpr uintptr_t kHigh[] = {uintptr_t{1} << 40, 0x5555'5555'0000, 0x7fff'f7f0'0000};
  for (const uintptr_t high : kHigh) {
    EXPECT_EQ(map_.Find(At(high)), nullptr);
    BlockMap::Byte* state = map_.Ensure(At(high));
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(map_.Find(At(high)), state);
    EXPECT_EQ(map_.Ensure(At(high)), state);
    EXPECT_EQ(map_.Known(At(high)), state);
    EXPECT_EQ(map_.FindLow(At(high)), nullptr);
    EXPECT_EQ(map_.Find(At(high + 1)), nullptr);
    EXPECT_EQ(map_.Find(At(high + (uintptr_t{1} << 33))), nullptr);
  }
}

TEST_F(BlockMapTest, ManyPartsAreFewMappings) {
  static int mappings;
  mappings = 0;
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) {
    ++mappings;
    return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
  };
  constexpr uintptr_t kHeap = uintptr_t{4} << 30;
  constexpr uintptr_t kStep = uintptr_t{1} << 20;
  for (uintptr_t at = 0; at < kHeap; at += kStep) {
    BlockMap::Byte* state = map_.Ensure(At(kHeap + at));
    if (state != nullptr) state->store(static_cast<uint8_t>(at / kStep % 251));
  }
  system_calls = saved;
  EXPECT_LT(mappings, 70);
  for (uintptr_t at = 0; at < kHeap; at += kStep) {
    const BlockMap::Byte* state = map_.Find(At(kHeap + at));
    ASSERT_NE(state, nullptr);
    ASSERT_EQ(state->load(), at / kStep % 251);
  }
}

TEST_F(BlockMapTest, LittleIsMappedUnderALimit) {
  constexpr size_t kLimit = size_t{60} << 20;
  static size_t mapped;
  mapped = 0;
  const SystemCalls saved = system_calls;
  system_calls.getrlimit = [](int, rlimit* limit) {
    *limit = {kLimit, kLimit};
    return 0;
  };
  system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) {
    mapped += bytes;
    return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
  };
  BlockMap map;
  const bool is_there = map.Initialize(Random());
  for (const uintptr_t address : {uintptr_t{5} << 30, uintptr_t{0x7fff'f7f0'0000}}) {
    BlockMap::Byte* state = map.Ensure(At(address));
    EXPECT_NE(state, nullptr);
    EXPECT_EQ(map.Find(At(address)), state);
  }
  system_calls = saved;
  EXPECT_TRUE(is_there);
  EXPECT_LE(mapped, kLimit / 50);
}

TEST_F(BlockMapTest, ThreadsFindTheSameParts) {
  constexpr size_t kParts = 400;
  constexpr uintptr_t kPart = uintptr_t{4} << 20;
  constexpr uintptr_t kFirst = (uintptr_t{1} << 40) - kParts / 2 * kPart;
  std::vector<BlockMap::Byte*> seen[4];
  std::vector<std::thread> threads;
  for (std::vector<BlockMap::Byte*>& states : seen) {
    threads.emplace_back([&] {
      for (size_t i = 0; i < kParts; ++i) {
        states.push_back(map_.Ensure(At(kFirst + i * kPart)));
        if (states.back() != nullptr) ++*states.back();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (size_t i = 0; i < kParts; ++i) {
    BlockMap::Byte* state = map_.Find(At(kFirst + i * kPart));
    ASSERT_NE(state, nullptr);
    EXPECT_EQ(state->load(), std::size(seen));
    for (const auto& states : seen) EXPECT_EQ(states[i], state);
  }
}

// An allocation that succeeds keeps errno, whatever the kernel said on the way.
TEST_F(BlockMapTest, PartsAreMappedWithoutAChangeOfErrno) {
  const SystemCalls saved = system_calls;
  system_calls.madvise = [](void*, size_t, int) {
    errno = EINVAL;
    return -1;
  };
  errno = 0;
  const BlockMap::Byte* state = map_.Ensure(At(0x7000'0000));
  const int after = errno;
  system_calls = saved;
  EXPECT_NE(state, nullptr);
  EXPECT_EQ(after, 0);
}

TEST_F(BlockMapTest, StatesFollowEachOtherButForBorders) {
  constexpr uintptr_t kBorder = 0x6000'0000;
  ASSERT_NE(map_.Ensure(At(kBorder - 16)), nullptr);
  ASSERT_NE(map_.Ensure(At(kBorder)), nullptr);
  const BlockMap::Byte* first = map_.FindAll(At(kBorder - 160), 160);
  ASSERT_NE(first, nullptr);
  EXPECT_EQ(first + 9, map_.Find(At(kBorder - 16)));
  EXPECT_EQ(map_.FindAll(At(kBorder - 160), 176), nullptr);
}

// The fast paths agree with the slow ones on every block that they accept.
TEST_F(BlockMapTest, TellsUnalignedBlocksToTheFastPaths) {
  constexpr uintptr_t kAddress = 0x6000'0000;
  constexpr uint8_t kClasses = SizeClassFor(512) + 1;
  BlockMap::Byte* state = map_.Ensure(At(kAddress));
  for (uint8_t c = 2; c < kClasses + 1; ++c) {
    const size_t capacity = kSizeClasses[c].size;
    for (size_t slack = 1; slack <= capacity; ++slack) {
      if (!BlockMap::CanHold(capacity - slack, capacity)) continue;
      for (const BlockFamily family : kFamilies) {
        BlockMap::Set(
            state,
            {.size = capacity - slack, .capacity = capacity, .family = family, .size_class = c});
        const uint8_t live = state->load();
        // The byte for the class, or of 48 bytes that for the alignment, tells a long slack in its
        // place, which only blocks have that are aligned or could not move when they shrank.
        const bool has_class =
            (capacity != 32 || state[1].load() == c) && (capacity != 48 || state[2].load() == 0);
        PlainBlock block;
        for (const BlockFamily asked : kFamilies) {
          const bool is_known = asked == family && c < kClasses && has_class;
          ASSERT_EQ(BlockMap::GetPlain(state, live, asked, kClasses, &block), is_known)
              << capacity << " less " << slack;
        }
        if (c >= kClasses || !has_class) continue;
        ASSERT_TRUE(BlockMap::GetPlain(state, live, family, kClasses, &block));
        ASSERT_EQ(block.size_class, c);
        ASSERT_EQ(block.capacity, capacity);
        ASSERT_EQ(block.slack, slack);
        state->store(BlockMap::kQuarantined);
        BlockMap::SetPlain(state, family, block);
        ASSERT_EQ(state->load(), live);
      }
    }
  }
}

TEST_F(BlockMapTest, TellsBlocksOfAShortSlackToTheFastPaths) {
  BlockMap::Byte* state = map_.Ensure(At(0x6000'0000));
  for (uint8_t c = 2; c <= SizeClassFor(512); ++c) {
    const size_t capacity = kSizeClasses[c].size;
    const BlockMap::ShortStates states(capacity);
    for (size_t slack = 1; slack <= std::min<size_t>(capacity, 30); ++slack) {
      for (const BlockFamily family : kFamilies) {
        BlockMap::Set(
            state,
            {.size = capacity - slack, .capacity = capacity, .family = family, .size_class = c});
        const uint8_t live = state->load();
        for (const BlockFamily asked : kFamilies) {
          ShortBlock block{.state = state, .live = live};
          const bool is_known = asked == family && slack <= 16;
          ASSERT_EQ(BlockMap::GetShort(asked, &block), is_known) << capacity << " less " << slack;
          if (!is_known) continue;
          ASSERT_EQ(block.size_class, c);
          ASSERT_EQ(block.slack, slack);
        }
        if (slack > 16) continue;
        state->store(BlockMap::kQuarantined);
        BlockMap::SetShort(state, family, states, capacity - slack);
        ASSERT_EQ(state->load(), live);
      }
    }
  }
}

TEST_F(BlockMapTest, FastPathsKnowNoOtherBlock) {
  constexpr uint8_t kClass = SizeClassFor(64);
  BlockMap::Byte* state = map_.Ensure(At(0x6000'0000));
  PlainBlock block;
  const auto is_known = [&] {
    return BlockMap::GetPlain(state, state->load(), BlockFamily::kMalloc, kSizeClassCount, &block);
  };
  for (unsigned value = 0; value < BlockMap::kLive; ++value) {
    state->store(static_cast<uint8_t>(value));
    ASSERT_FALSE(is_known()) << value;
    ShortBlock short_block{.state = state, .live = state->load()};
    ASSERT_FALSE(BlockMap::GetShort(BlockFamily::kMalloc, &short_block)) << value;
  }
  BlockMap::Set(state, {.size = 60, .capacity = 64, .log2_alignment = 6, .size_class = kClass});
  EXPECT_FALSE(is_known());
  EXPECT_EQ(BlockMap::Get(At(0x6000'0000), state, state->load()).log2_alignment, 6);
  EXPECT_EQ(BlockMap::Get(At(0x6000'0000), state, state->load()).size, 60u);
  // Its memory becomes that of a block without alignment.
  BlockMap::MakePlain(state, kClass);
  BlockMap::SetPlain(state, BlockFamily::kNew, {kClass, 64, 4});
  EXPECT_EQ(BlockMap::Get(At(0x6000'0000), state, state->load()).log2_alignment, 0);
  EXPECT_EQ(BlockMap::Get(At(0x6000'0000), state, state->load()).size, 60u);
}

// The size of a longer block, where its memory is cut into smaller objects.
TEST_F(BlockMapTest, NewObjectsDoNotLookLikeBlocksInQuarantine) {
  constexpr size_t kCapacity = 512;
  BlockMap::Byte* state = map_.Ensure(At(0x6000'0000));
  BlockMap::Set(state, {.size = kCapacity - BlockMap::kQuarantined,
                        .capacity = kCapacity,
                        .log2_alignment = 9,
                        .size_class = SizeClassForAligned(kCapacity, kCapacity)});
  BlockMap::Byte* inside = std::find_if(
      state + 1, state + kCapacity / BlockMap::kGranule,
      [](const BlockMap::Byte& byte) { return byte.load() == BlockMap::kQuarantined; });
  ASSERT_NE(inside, state + kCapacity / BlockMap::kGranule);
  BlockMap::MakeNew(inside, SizeClassFor(16));
  EXPECT_EQ(inside->load(), BlockMap::kFree);
}

// Every size that a class can have, between two neighbours that must not change.
TEST_F(BlockMapTest, TellsEverySizeOfEveryClass) {
  constexpr uintptr_t kAddress = 0x5000'0000;
  for (size_t c = 2; c < kSizeClassCount; ++c) {
    const size_t capacity = kSizeClasses[c].size;
    BlockMap::Byte* state = map_.Ensure(At(kAddress));
    BlockMap::Byte* next = state + capacity / 16;
    next->store(BlockMap::kLive + 1);
    const size_t step = std::max<size_t>(capacity / 300, 1);
    for (size_t size = capacity - 1; size < capacity; size -= std::min(step, size + 1)) {
      if (!BlockMap::CanHold(size, capacity)) continue;
      for (const BlockFamily family : kFamilies) {
        BlockMap::Set(state, {.size = size,
                              .capacity = capacity,
                              .family = family,
                              .size_class = static_cast<uint8_t>(c)});
        ASSERT_GE(state->load(), BlockMap::kLive);
        const LiveBlock block = BlockMap::Get(At(kAddress), state, state->load());
        ASSERT_EQ(block.size, size) << capacity;
        ASSERT_EQ(block.capacity, capacity);
        ASSERT_EQ(block.family, family);
        ASSERT_EQ(block.size_class, c);
        ASSERT_FALSE(HasLiveBlock(state + 1, next)) << "an address inside is no block";
      }
      if (size == 0) break;
    }
    ASSERT_EQ(next->load(), BlockMap::kLive + 1) << capacity;
    for (; state <= next; ++state) state->store(0);
  }
}

TEST_F(BlockMapTest, HoldsWhatPlainRequestsNeed) {
  for (size_t size = 0; size < kMaxSmallSize; size += 1 + size / 500) {
    const size_t bytes = std::max<size_t>(size + 1, 16);
    EXPECT_TRUE(BlockMap::CanHold(size, kSizeClasses[SizeClassFor(bytes)].size)) << size;
  }
}

TEST_F(BlockMapTest, KeepsTheAlignment) {
  BlockMap::Byte* state = map_.Ensure(At(0x5000'0000));
  BlockMap::Set(state,
                {.size = 1, .capacity = 64, .log2_alignment = 6, .size_class = SizeClassFor(64)});
  const LiveBlock block = BlockMap::Get(At(0x5000'0000), state, state->load());
  EXPECT_EQ(block.log2_alignment, 6);
  EXPECT_EQ(block.size, 1u);
}

// A block that begins right before a border between two leaves has its further bytes behind the
// first one, and its neighbour is in the other.
TEST_F(BlockMapTest, BlocksMayLieAcrossLeaves) {
  constexpr uintptr_t kBorder = 0x6000'0000;
  constexpr size_t kCapacity = 320;
  constexpr uint8_t kClass = SizeClassFor(kCapacity);
  for (uintptr_t before = 16; before < kCapacity; before += 16) {
    const uintptr_t address = kBorder - before;
    BlockMap::Byte* state = map_.Ensure(At(address));
    BlockMap::Byte* next = map_.Ensure(At(address + kCapacity));
    BlockMap::Set(next, {.size = 310, .capacity = kCapacity, .size_class = kClass});
    BlockMap::Set(state, {.size = 281, .capacity = kCapacity, .size_class = kClass});
    EXPECT_EQ(BlockMap::Get(At(address), state, state->load()).size, 281u);
    EXPECT_EQ(BlockMap::Get(At(address + kCapacity), next, next->load()).size, 310u);
    state->store(0);
    next->store(0);
  }
}

}  // namespace
}  // namespace tcmalloc
