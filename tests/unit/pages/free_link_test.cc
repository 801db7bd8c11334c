// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/free_link.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>

namespace tcmalloc::testing {
namespace {

constexpr uintptr_t kLimit = uintptr_t{1} << 40;
constexpr uint64_t kEndWord = 0;

void* AddressOf(uintptr_t address) { return reinterpret_cast<void*>(address); }

class LinkCodecTest : public ::testing::Test {
 protected:
  LinkCodec NewCodec() {
    LinkCodec codec;
    codec.Initialize(random_(), kLimit, &kEndWord);
    return codec;
  }
  uintptr_t AlignedAddress() { return 8 + random_() % (kLimit - 8) / 8 * 8; }

  std::mt19937_64 random_{1};
};

TEST_F(LinkCodecTest, ReferenceLeadsBackToItsObject) {
  for (int i = 0; i < 100'000; ++i) {
    const uintptr_t address = random_() >> random_() % 64 & ~uintptr_t{7};
    ASSERT_EQ(ObjectAt(ReferenceTo(AddressOf(address))), AddressOf(address));
  }
}

TEST_F(LinkCodecTest, DecodeIsTheInverseOfEncode) {
  for (int secret = 0; secret < 1000; ++secret) {
    const LinkCodec codec = NewCodec();
    ASSERT_EQ(codec.key * codec.inverse, 1u);
    for (int i = 0; i < 100; ++i) {
      const uint64_t value = random_();
      ASSERT_EQ(codec.Decode(codec.Encode(value)), value);
    }
  }
}

TEST_F(LinkCodecTest, AlignedAddressesBelowTheLimitAreInTheWindow) {
  const LinkCodec codec = NewCodec();
  for (int i = 0; i < 100'000; ++i) {
    ASSERT_TRUE(codec.InWindow(ReferenceTo(AddressOf(AlignedAddress()))));
  }
  EXPECT_TRUE(codec.InWindow(ReferenceTo(AddressOf(8))));
  EXPECT_TRUE(codec.InWindow(ReferenceTo(AddressOf(kLimit - 8))));
  EXPECT_FALSE(codec.InWindow(ReferenceTo(AddressOf(kLimit))));
  EXPECT_FALSE(codec.InWindow(ReferenceTo(AddressOf(UINTPTR_MAX & ~uintptr_t{7}))));
}

TEST_F(LinkCodecTest, LinksOfASmallerWindowAreValidInALargerOne) {
  LinkCodec codec = NewCodec();
  const ObjectReference inside = ReferenceTo(AddressOf(kLimit - 8));
  const ObjectReference beyond = ReferenceTo(AddressOf(2 * kLimit - 8));
  const uint64_t link = codec.Encode(inside);
  EXPECT_FALSE(codec.InWindow(beyond));
  codec.SetWindowLimit(2 * kLimit);
  EXPECT_EQ(codec.Decode(link), inside);
  EXPECT_TRUE(codec.InWindow(inside));
  EXPECT_TRUE(codec.InWindow(beyond));
  EXPECT_FALSE(codec.InWindow(ReferenceTo(AddressOf(2 * kLimit))));
}

TEST_F(LinkCodecTest, MisalignedAddressesAreNeverInTheWindow) {
  const LinkCodec codec = NewCodec();
  for (int i = 0; i < 100'000; ++i) {
    const uintptr_t address = (random_() >> random_() % 64 & ~uintptr_t{7}) + 1 + random_() % 7;
    ASSERT_FALSE(codec.InWindow(ReferenceTo(AddressOf(address)))) << address;
  }
}

TEST_F(LinkCodecTest, ZeroIsNoLinkUnderAnySecret) {
  for (int secret = 0; secret < 10'000; ++secret) {
    const LinkCodec codec = NewCodec();
    ASSERT_FALSE(codec.InWindow(codec.Decode(0)));
  }
}

TEST_F(LinkCodecTest, UnusedCodecHasAnEmptyWindow) {
  const LinkCodec codec;
  for (int i = 0; i < 1000; ++i) ASSERT_FALSE(codec.InWindow(random_()));
  EXPECT_FALSE(codec.InWindow(ReferenceTo(nullptr)));
}

TEST_F(LinkCodecTest, LinkedObjectsAreFollowed) {
  const LinkCodec codec = NewCodec();
  alignas(8) uint64_t objects[3] = {};
  codec.Link(&objects[0], ReferenceTo(&objects[2]));
  codec.Link(&objects[2], codec.end);
  EXPECT_EQ(ObjectAt(codec.Next(&objects[0])), &objects[2]);
  EXPECT_EQ(codec.Next(&objects[2]), codec.end);
}

TEST_F(LinkCodecTest, EndReadsAsAWordWithoutLink) {
  const LinkCodec codec = NewCodec();
  EXPECT_EQ(ObjectAt(codec.end), &kEndWord);
  EXPECT_FALSE(codec.InWindow(codec.Next(ObjectAt(codec.end))));
}

// The links that survive an overwrite of `bytes` bytes, of `kTrials`.
class OverwriteTest : public LinkCodecTest {
 protected:
  static constexpr int kTrials = 4'000'000;

  int CountUnnoticed(size_t bytes, bool keep_codec) {
    LinkCodec codec = NewCodec();
    int unnoticed = 0;
    for (int i = 0; i < kTrials; ++i) {
      if (!keep_codec) codec = NewCodec();
      uint64_t word = codec.Encode(ReferenceTo(AddressOf(AlignedAddress())));
      const uint64_t before = word;
      const uint64_t value = random_();
      std::memcpy(reinterpret_cast<char*>(&word) + random_() % (9 - bytes), &value, bytes);
      if (word != before && codec.InWindow(codec.Decode(word))) ++unnoticed;
    }
    return unnoticed;
  }
};

// One in 2^27 is expected to go unnoticed.
TEST_F(OverwriteTest, OneByte) {
  EXPECT_LE(CountUnnoticed(1, true), 2);
  EXPECT_LE(CountUnnoticed(1, false), 2);
}
TEST_F(OverwriteTest, FourBytes) {
  EXPECT_LE(CountUnnoticed(4, true), 2);
  EXPECT_LE(CountUnnoticed(4, false), 2);
}
TEST_F(OverwriteTest, TheWholeWord) { EXPECT_LE(CountUnnoticed(8, true), 2); }

// Values that programs write most: small numbers, characters and addresses.
TEST_F(OverwriteTest, CommonValues) {
  for (int secret = 0; secret < 100; ++secret) {
    const LinkCodec codec = NewCodec();
    for (uint64_t value = 0; value < 1000; ++value) {
      EXPECT_FALSE(codec.InWindow(codec.Decode(value)));
      EXPECT_FALSE(codec.InWindow(codec.Decode(~value)));
      EXPECT_FALSE(codec.InWindow(codec.Decode(AlignedAddress())));
    }
    for (uint64_t byte = 0; byte < 256; ++byte) {
      EXPECT_FALSE(codec.InWindow(codec.Decode(byte * 0x0101010101010101)));
    }
  }
}

}  // namespace
}  // namespace tcmalloc::testing
