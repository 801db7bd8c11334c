// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/release/demand_window.h"

#include <gtest/gtest.h>

namespace tcmalloc {
namespace {

constexpr uint64_t kEpoch = 100;

TEST(DemandWindowTest, NothingAtFirst) { EXPECT_EQ(DemandWindow().peak(), Length(0)); }

TEST(DemandWindowTest, APeakIsRememberedForTheWindow) {
  DemandWindow window;
  window.Advance(1000, kEpoch, Length(3));
  window.Note(Length(70));
  for (uint64_t i = 0; i <= DemandWindow::kEpochs; ++i) {
    window.Advance(1000 + i * kEpoch, kEpoch, Length(3));
    EXPECT_EQ(window.peak(), Length(70)) << i;
  }
  window.Advance(1000 + (DemandWindow::kEpochs + 1) * kEpoch, kEpoch, Length(3));
  EXPECT_EQ(window.peak(), Length(3));
}

TEST(DemandWindowTest, PartsOfAnEpochAddUp) {
  DemandWindow window;
  window.Advance(1000, kEpoch, Length(0));
  window.Note(Length(70));
  for (uint64_t ns = 0; ns < (DemandWindow::kEpochs + 1) * kEpoch; ns += 7) {
    window.Advance(1000 + ns, kEpoch, Length(0));
    ASSERT_EQ(window.peak(), Length(70)) << ns;
  }
  window.Advance(1000 + (DemandWindow::kEpochs + 1) * kEpoch, kEpoch, Length(0));
  EXPECT_EQ(window.peak(), Length(0));
}

TEST(DemandWindowTest, ALongPauseForgetsAllButWhatIsInUse) {
  DemandWindow window;
  window.Advance(1000, kEpoch, Length(0));
  window.Note(Length(70));
  window.Advance(UINT64_MAX / 2, kEpoch, Length(20));
  EXPECT_EQ(window.peak(), Length(20));
}

TEST(DemandWindowTest, TimeMayStepBack) {
  DemandWindow window;
  window.Advance(1000, kEpoch, Length(0));
  window.Note(Length(70));
  window.Advance(1, kEpoch, Length(0));
  EXPECT_EQ(window.peak(), Length(70));
}

}  // namespace
}  // namespace tcmalloc
