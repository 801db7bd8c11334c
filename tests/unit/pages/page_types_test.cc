// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/page_types.h"

#include <gtest/gtest.h>

#include <concepts>
#include <cstdint>

namespace tcmalloc {
namespace {

template <typename A, typename B>
concept Addable = requires(A a, B b) { a + b; };

TEST(PageTypes, BytesRoundUpToPages) {
  EXPECT_EQ(Length::FromBytesCeil(0), Length(0));
  EXPECT_EQ(Length::FromBytesCeil(1), Length(1));
  EXPECT_EQ(Length::FromBytesCeil(kPageSize), Length(1));
  EXPECT_EQ(Length::FromBytesCeil(kPageSize + 1), Length(2));
  EXPECT_EQ(Length::FromBytesCeil(SIZE_MAX - kPageSize + 1), Length::Max());
}

TEST(PageTypes, TheLongestLengthHasBytes) {
  EXPECT_EQ(Length::Max().bytes(), SIZE_MAX - kPageSize + 1);
  EXPECT_EQ(Length(3).bytes(), 3 * kPageSize);
}

TEST(PageTypes, EveryAddressOfAPageBelongsToIt) {
  const PageId page(12345);
  EXPECT_EQ(PageId::Containing(page.start()), page);
  EXPECT_EQ(PageId::Containing(page.start() + kPageSize - 1), page);
  EXPECT_EQ(PageId::Containing(page.start() + kPageSize), page + Length(1));
  EXPECT_EQ(page.address(), 12345 * kPageSize);
}

TEST(PageTypes, Arithmetic) {
  Length length(5);
  length += Length(3);
  length -= Length(1);
  EXPECT_EQ(length, Length(7));
  EXPECT_EQ(Length(2) * 3, Length(6));
  EXPECT_LT(Length(2), Length(3));
  PageId page(10);
  ++page;
  EXPECT_EQ(page - PageId(4), Length(7));
  EXPECT_EQ(page - Length(4), PageId(7));
}

TEST(PageTypes, OnlyMeaningfulSumsExist) {
  static_assert(Addable<PageId, Length>);
  static_assert(Addable<Length, Length>);
  static_assert(!Addable<PageId, PageId>);
  static_assert(!Addable<Length, int>);
  static_assert(!std::convertible_to<int, Length>);
  static_assert(!std::convertible_to<int, PageId>);
  static_assert(!std::convertible_to<PageId, Length>);
}

}  // namespace
}  // namespace tcmalloc
