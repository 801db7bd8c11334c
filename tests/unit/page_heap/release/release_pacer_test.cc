// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/release_pacer.h"

#include <gtest/gtest.h>

#include <cmath>

namespace tcmalloc {
namespace {

// Frees `freed` pages one by one; each release gives `chunk` pages back. Returns the pages
// released.
uint64_t Released(ReleasePacer* pacer, uint64_t freed, uint64_t chunk) {
  uint64_t released = 0;
  for (uint64_t i = 0; i < freed; ++i) {
    if (!pacer->NoteFreed(Length(1))) continue;
    released += chunk;
    pacer->NoteReleased(Length(chunk));
  }
  return released;
}

TEST(ReleasePacer, StartsAtTheDefaultRate) {
  ReleasePacer pacer;
  EXPECT_EQ(pacer.rate(), 1.0);
  const auto released = static_cast<double>(Released(&pacer, 1'000'000, 1));
  EXPECT_NEAR(released, 1000, 10);
}

TEST(ReleasePacer, ReleasesRatePagesPerThousandFreed) {
  for (double rate : {0.5, 1.0, 3.0, 10.0}) {
    for (uint64_t chunk : {1u, 7u, 100u}) {
      ReleasePacer pacer;
      pacer.set_rate(rate);
      const auto released = static_cast<double>(Released(&pacer, 1'000'000, chunk));
      EXPECT_NEAR(released, 1000 * rate, 10 * rate + static_cast<double>(chunk)) << rate;
    }
  }
}

TEST(ReleasePacer, RateZeroNeverReleases) {
  ReleasePacer pacer;
  pacer.set_rate(0);
  EXPECT_EQ(Released(&pacer, 1'000'000, 1), 0u);
  EXPECT_FALSE(pacer.NoteFreed(Length(uintptr_t{1} << 40)));
}

TEST(ReleasePacer, NonsenseIsZero) {
  ReleasePacer pacer;
  for (double rate : {-1.0, std::nan("")}) {
    pacer.set_rate(rate);
    EXPECT_EQ(pacer.rate(), 0);
    EXPECT_EQ(Released(&pacer, 100'000, 1), 0u);
  }
}

TEST(ReleasePacer, ANewRateCountsAtOnce) {
  ReleasePacer pacer;
  pacer.set_rate(0);
  EXPECT_EQ(Released(&pacer, 100'000, 1), 0u);
  pacer.set_rate(10);
  EXPECT_NEAR(static_cast<double>(Released(&pacer, 100'000, 1)), 1000, 20);
}

TEST(ReleasePacer, OneReleaseIsDueAtATime) {
  ReleasePacer pacer;
  EXPECT_TRUE(pacer.NoteFreed(Length(5000)));
  EXPECT_FALSE(pacer.NoteFreed(Length(5000)));
  pacer.NoteReleased(Length(1));
  EXPECT_TRUE(pacer.NoteFreed(Length(5000)));
}

TEST(ReleasePacer, WaitsLongWhenThereWasNothingToRelease) {
  ReleasePacer pacer;
  ASSERT_TRUE(pacer.NoteFreed(Length(5000)));
  pacer.NoteReleased(Length(0));
  EXPECT_FALSE(pacer.NoteFreed(Length(100'000)));
  EXPECT_TRUE(pacer.NoteFreed(Length(200'000)));
}

TEST(ReleasePacer, ABigReleaseDoesNotSilenceItForEver) {
  ReleasePacer pacer;
  ASSERT_TRUE(pacer.NoteFreed(Length(5000)));
  pacer.NoteReleased(Length(uintptr_t{1} << 40));
  EXPECT_FALSE(pacer.NoteFreed(Length(1'000'000)));
  EXPECT_TRUE(pacer.NoteFreed(Length(100'000)));
}

}  // namespace
}  // namespace tcmalloc
