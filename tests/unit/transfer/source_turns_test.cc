// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "transfer/source_turns.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>

#include "fakes/fake_batch_source.h"
#include "fakes/fake_source_table.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

constexpr uint32_t kClasses = kSizeClassCount - 1;

class SourceTurnsTest : public ::testing::Test {
 protected:
  size_t Asked() const {
    size_t asked = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) asked += sources_.at(c).collections();
    return asked;
  }
  void EnsureAll() {
    for (size_t c = 1; c < kSizeClassCount; ++c) sources_.Ensure(static_cast<uint8_t>(c));
  }

  FakeSourceTable<FakeBatchSource> sources_;
  SourceTurns turns_;
};

TEST_F(SourceTurnsTest, EachHasItsTurn) {
  EnsureAll();
  // No share of all classes, so that a round ends in the middle of a call.
  constexpr uint32_t kAtOnce = 7;
  for (uint32_t asked = 0; asked < kClasses; asked += kAtOnce) {
    EXPECT_EQ(Asked(), asked);
    turns_.ReturnUnused(sources_, kAtOnce);
  }
  for (size_t c = 1; c < kSizeClassCount; ++c) {
    EXPECT_GE(sources_.at(c).collections(), 1u) << "class " << c;
    EXPECT_LE(sources_.at(c).collections(), 2u) << "class " << c;
  }
}

TEST_F(SourceTurnsTest, WhatDoesNotExistIsPassedBy) {
  sources_.Ensure(3);
  turns_.ReturnUnused(sources_, 2 * kClasses);
  EXPECT_EQ(sources_.at(3).collections(), 2u);
  EXPECT_EQ(Asked(), 2u);
}

}  // namespace
}  // namespace tcmalloc::testing
