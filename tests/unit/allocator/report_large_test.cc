// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The messages about large blocks.

#include <gtest/gtest.h>

#include <cstddef>
#include <sstream>
#include <string>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "heap/heap.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {
namespace {

std::string ReportOf(size_t bytes, const void* block) {
  std::ostringstream line;
  line << "tcmalloc: large alloc " << bytes << " bytes == " << block << " @\n";
  return line.str();
}

// Returns the lines that are reported while f() runs.
template <typename F>
std::string ReportsOf(F f) {
  ::testing::internal::CaptureStderr();
  f();
  return ::testing::internal::GetCapturedStderr();
}

class ReportLargeTest : public ::testing::Test {
 protected:
  ReportLargeTest() {
    heap.EnsureInitialized();
    heap.large_reports().set_threshold(8 * kMiB);
  }
};

TEST_F(ReportLargeTest, NamesTheBlockOnce) {
  void* block = nullptr;
  EXPECT_EQ(ReportsOf([&] { block = Allocate(8 * kMiB - kPageSize); }), "");
  Deallocate(block);
  std::string reports = ReportsOf([&] { block = Allocate(8 * kMiB); });
  EXPECT_EQ(reports, ReportOf(8 * kMiB, block));
  Deallocate(block);
  EXPECT_EQ(ReportsOf([&] { block = Allocate(8 * kMiB); }), "") << "the threshold is higher now";
  Deallocate(block);
  reports = ReportsOf([&] { block = Allocate(9 * kMiB - 1); });
  EXPECT_EQ(reports, ReportOf(9 * kMiB, block));
  Deallocate(block);
}

TEST_F(ReportLargeTest, InEveryWayToGetOne) {
  void* block = nullptr;
  std::string reports = ReportsOf([&] { block = AllocateZeroed(10 * kMiB); });
  EXPECT_EQ(reports, ReportOf(10 * kMiB, block));
  Deallocate(block);
  reports = ReportsOf([&] { block = AllocateAligned(20 * kMiB, kMiB); });
  EXPECT_EQ(reports, ReportOf(20 * kMiB, block));
  Deallocate(block);
  block = Allocate(kMiB);
  reports = ReportsOf([&] { block = Reallocate(block, 40 * kMiB); });
  EXPECT_EQ(reports, ReportOf(40 * kMiB, block));
  Deallocate(block);
}

TEST_F(ReportLargeTest, FailuresAreNotReported) {
  heap.SetHardLimit(100 * kMiB);
  EXPECT_EQ(ReportsOf([] { EXPECT_EQ(Allocate(200 * kMiB), nullptr); }), "");
  heap.SetHardLimit(0);
}

}  // namespace
}  // namespace tcmalloc::testing
