// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/residency.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace tcmalloc {
namespace {

class ResidencyTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Enough for several windows.
  static constexpr size_t kPages = 1000;

  void SetUp() override {
    memory_ = static_cast<char*>(mmap(nullptr, kPages * page_bytes_, PROT_READ | PROT_WRITE,
                                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    madvise(memory_, kPages * page_bytes_, MADV_NOHUGEPAGE);
  }
  void TearDown() override { munmap(memory_, kPages * page_bytes_); }

  uintptr_t Address(size_t page) const {
    return reinterpret_cast<uintptr_t>(memory_) + page * page_bytes_;
  }
  void Touch(size_t page) { memory_[page * page_bytes_] = 'x'; }

  const size_t page_bytes_ = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* memory_ = nullptr;
};

TEST_P(ResidencyTest, CountsThePagesThatWereTouched) {
  for (const size_t page : {3, 4, 300, 999}) Touch(page);
  Residency residency(GetParam());
  EXPECT_EQ(residency.Of(Address(0), kPages * page_bytes_).resident, 4 * page_bytes_);
  EXPECT_EQ(residency.Of(Address(0), 3 * page_bytes_).resident, 0u);
  EXPECT_EQ(residency.Of(Address(999), page_bytes_).resident, page_bytes_);
  EXPECT_EQ(residency.Of(Address(0), kPages * page_bytes_).swapped, 0u);
}

TEST_P(ResidencyTest, CountsTheBytesOfPartsOfPages) {
  Touch(3);
  Residency residency(GetParam());
  EXPECT_EQ(residency.Of(Address(3) + 10, 20).resident, 20u);
  EXPECT_EQ(residency.Of(Address(3) - 10, 20).resident, 10u);
  EXPECT_EQ(residency.Of(Address(4) - 10, 20).resident, 10u);
  EXPECT_EQ(residency.Of(Address(3), 0).resident, 0u);
}

TEST_P(ResidencyTest, MemoryThatWasGivenBackIsGone) {
  for (size_t page = 0; page < 10; ++page) Touch(page);
  ASSERT_EQ(madvise(memory_, 4 * page_bytes_, MADV_DONTNEED), 0);
  EXPECT_EQ(Residency(GetParam()).Of(Address(0), 10 * page_bytes_).resident, 6 * page_bytes_);
}

TEST_P(ResidencyTest, KeepsErrno) {
  errno = EDOM;
  {
    Residency(GetParam()).Of(Address(0), page_bytes_);
  }
  EXPECT_EQ(errno, EDOM);
}

INSTANTIATE_TEST_SUITE_P(Sources, ResidencyTest,
                         ::testing::Values("/proc/self/pagemap", "/no/pagemap", "/dev/null"));

// 4 GiB, of which one half is there.
TEST(ResidencyOfLongRangesTest, PartsStandForTheRest) {
  constexpr size_t kBytes = size_t{4} << 30;
  constexpr size_t kFile = size_t{64} << 20;
  void* memory =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  const int fd = memfd_create("pages", 0);
  ASSERT_EQ(ftruncate(fd, kFile), 0);
  auto* start = static_cast<char*>(memory);
  for (size_t at = 0; at < kBytes / 2; at += kFile) {
    ASSERT_NE(mmap(start + at, kFile, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                   fd, 0),
              MAP_FAILED);
  }
  const auto address = reinterpret_cast<uintptr_t>(memory);
  const PageBytes bytes = Residency().Of(address, kBytes);
  EXPECT_NEAR(static_cast<double>(bytes.resident), kBytes / 2.0, kBytes / 100.0);
  EXPECT_LE(Residency().Of(address, kBytes / 2).resident, kBytes / 2);
  munmap(memory, kBytes);
  close(fd);
}

TEST(PagesOfTest, RowsInAnyOrderGetTheirOwnPages) {
  const auto page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  char* memory = static_cast<char*>(
      mmap(nullptr, 4 * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  memory[2 * page_bytes] = 'x';
  ProfileRow rows[3];
  for (size_t i = 0; i < 3; ++i) {
    rows[i].sample.address = reinterpret_cast<uintptr_t>(memory) + (3 - i) * page_bytes;
    rows[i].sample.allocated = 100 + i;
  }
  const Scratch<PageBytes> pages = PagesOf(rows);
  ASSERT_EQ(pages.size(), 3u);
  EXPECT_EQ(pages[0].resident, 0u);
  EXPECT_EQ(pages[1].resident, 101u);
  EXPECT_EQ(pages[2].resident, 0u);
  EXPECT_EQ(PagesOf({}).size(), 0u);
  munmap(memory, 4 * page_bytes);
}

}  // namespace
}  // namespace tcmalloc
