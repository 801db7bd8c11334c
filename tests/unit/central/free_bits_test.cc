// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/free_bits.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <random>
#include <vector>

#include "fakes/fake_metadata.h"

namespace tcmalloc::testing {
namespace {

using Indices = std::vector<size_t>;

// The bits of one span: some fit its record, some need one word or several.
class FreeBitsTest : public ::testing::TestWithParam<size_t> {
 protected:
  FreeBitsTest() {
    pool_.Initialize(arena_, GetParam(), kObjectBytes);
    pool_.Attach(&span_);
  }

  static constexpr uint32_t kObjectBytes = 8;

  FreeBits bits() { return {&span_, pool_.words()}; }
  Indices Set() {
    Indices found;
    bits().ForEach([&found](size_t index) {
      found.push_back(index);
      return true;
    });
    return found;
  }
  Indices Take(uint32_t most) {
    std::vector<uint16_t> out(GetParam());
    out.resize(bits().Take(most, out.data()));
    return {out.begin(), out.end()};
  }

  // Returns the bits of the word that were set before and should be set.
  uint64_t SetOne(size_t index) {
    return bits().Set(index / FreeBits::kWordBits, uint64_t{1} << (index % FreeBits::kWordBits));
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  FreeBitsPool pool_;
  Span span_;
};

TEST_P(FreeBitsTest, NoneIsSetAtFirst) {
  EXPECT_TRUE(Set().empty());
  EXPECT_FALSE(bits().IsSet(0));
  EXPECT_FALSE(bits().IsSet(GetParam() - 1));
  EXPECT_TRUE(Take(1).empty());
}

TEST_P(FreeBitsTest, SettingOneTwiceIsNoticed) {
  for (size_t i = 0; i < GetParam(); ++i) {
    ASSERT_EQ(SetOne(i), 0u);
    ASSERT_TRUE(bits().IsSet(i));
    ASSERT_EQ(SetOne(i), uint64_t{1} << (i % FreeBits::kWordBits));
  }
}

TEST_P(FreeBitsTest, SeveralOfAWordAreSetAtOnce) {
  const uint64_t all =
      ~uint64_t{0} >> (FreeBits::kWordBits - std::min(GetParam(), FreeBits::kWordBits));
  SetOne(0);
  EXPECT_EQ(bits().Set(0, all), 1u);
  EXPECT_EQ(Set().size(), std::min(GetParam(), FreeBits::kWordBits));
}

TEST(FreeBitsIndexTest, IsThatOfTheLowestAndTheHighestBit) {
  EXPECT_EQ(FreeBits::IndexOf(0, 0b110), 1u);
  EXPECT_EQ(FreeBits::HighestOf(0, 0b110), 2u);
  EXPECT_EQ(FreeBits::IndexOf(3, uint64_t{1} << 63), 255u);
  EXPECT_EQ(FreeBits::HighestOf(3, uint64_t{1} << 63), 255u);
}

TEST_P(FreeBitsTest, TheLowestAreTakenFirst) {
  Indices indices(GetParam());
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = i;
  std::shuffle(indices.begin(), indices.end(), std::mt19937(1));
  indices.resize(std::max<size_t>(indices.size() / 2, 1));
  for (const size_t index : indices) SetOne(index);
  std::sort(indices.begin(), indices.end());
  EXPECT_EQ(Set(), indices);
  for (uint32_t most = 1; !indices.empty(); most = most * 3 % 100) {
    const size_t count = std::min<size_t>(most, indices.size());
    const Indices expected(indices.begin(), indices.begin() + static_cast<long>(count));
    ASSERT_EQ(Take(most), expected);
    indices.erase(indices.begin(), indices.begin() + static_cast<long>(count));
    ASSERT_EQ(Set(), indices);
  }
}

TEST_P(FreeBitsTest, AVisitEndsWhenItIsTold) {
  if (GetParam() < 3) GTEST_SKIP() << "too few to end before the last";
  for (const size_t index : {size_t{0}, size_t{1}, GetParam() - 1}) SetOne(index);
  size_t visits = 0;
  bits().ForEach([&visits](size_t) { return ++visits < 2; });
  EXPECT_EQ(visits, 2u);
}

TEST_P(FreeBitsTest, BitsThatServeAgainAreClear) {
  for (size_t i = 0; i < GetParam(); ++i) SetOne(i);
  Span other;
  pool_.Attach(&other);
  const uintptr_t first = span_.details;
  pool_.Detach(&span_);
  EXPECT_EQ(span_.details, 0u);
  pool_.Attach(&span_);
  if (pool_.words() > 1) {
    EXPECT_EQ(span_.details, first) << "the words of the span that went";
    EXPECT_NE(span_.details, other.details);
  }
  EXPECT_TRUE(Set().empty());
}

// The words of many objects take the place of some of them.
TEST_P(FreeBitsTest, WithoutMemoryTheSpanHasThem) {
  metadata_.exhausted = true;
  while (arena_.Allocate(sizeof(uint64_t), alignof(uint64_t)) != nullptr) {
  }
  alignas(kPageSize) static char memory[kPageSize];
  std::memset(memory, 0xff, sizeof(memory));
  Span span;
  span.first = PageId::Containing(memory);
  span.length = Length(1);
  span.capacity = static_cast<uint32_t>(GetParam());
  span.zeroed = true;
  pool_.Attach(&span);
  const size_t words = pool_.words();
  const size_t bytes = words == 1 ? 0 : words * sizeof(uint64_t);
  EXPECT_EQ(span.capacity, GetParam() - (bytes + kObjectBytes - 1) / kObjectBytes);
  EXPECT_EQ(span.zeroed, words == 1);
  for (size_t i = 0; i < span.capacity; ++i) {
    ASSERT_EQ(FreeBits(&span, words)
                  .Set(i / FreeBits::kWordBits, uint64_t{1} << (i % FreeBits::kWordBits)),
              0u);
  }
  char* const end = memory + size_t{span.capacity} * kObjectBytes;
  EXPECT_EQ(std::count(memory, end, '\xff'), end - memory);
  EXPECT_TRUE(
      std::all_of(end + bytes, memory + sizeof(memory), [](char c) { return c == '\xff'; }));
  // They go with the span, and serve no other.
  pool_.Detach(&span);
  Span other = span;
  other.first = PageId::Containing(memory) + Length(1);
  metadata_.exhausted = false;
  pool_.Attach(&other);
  EXPECT_EQ(other.capacity, span.capacity);
}

INSTANTIATE_TEST_SUITE_P(Objects, FreeBitsTest, ::testing::Values(1, 2, 63, 64, 65, 341, 1024));

}  // namespace
}  // namespace tcmalloc::testing
