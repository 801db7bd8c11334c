// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/residency.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace tcmalloc {
namespace {

const size_t page_bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));

// Memory that is not touched is not there, and touching a page brings that page alone.
char* MapPages(size_t pages) {
  void* memory =
      mmap(nullptr, pages * page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  madvise(memory, pages * page_bytes, MADV_NOHUGEPAGE);
  return static_cast<char*>(memory);
}

// Some sandboxes take all mapped pages for resident.
bool KernelTellsPages() {
  char* memory = MapPages(1);
  unsigned char core = 1;
  const bool asked = memory != nullptr && mincore(memory, page_bytes, &core) == 0;
  munmap(memory, page_bytes);
  return asked && (core & 1) == 0;
}

// A busy kernel moves pages, or swaps them, and has none at their place meanwhile.
template <typename Check>
bool HoldsSoon(Check check) {
  for (int i = 0; i < 100; ++i) {
    if (check()) return true;
    usleep(10'000);
  }
  return false;
}

class ResidencyTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Enough for several windows.
  static constexpr size_t kPages = 1000;

  void SetUp() override {
    if (!KernelTellsPages()) GTEST_SKIP() << "the kernel does not tell which pages are resident";
    memory_ = MapPages(kPages);
    ASSERT_NE(memory_, nullptr);
  }
  void TearDown() override { munmap(memory_, kPages * page_bytes); }

  uintptr_t Address(size_t page) const {
    return reinterpret_cast<uintptr_t>(memory_) + page * page_bytes;
  }
  void Touch(size_t page) { memory_[page * page_bytes] = 'x'; }

  char* memory_ = nullptr;
};

TEST_P(ResidencyTest, CountsThePagesThatWereTouched) {
  EXPECT_TRUE(HoldsSoon([this] {
    for (const size_t page : {3, 4, 300, 999}) Touch(page);
    Residency residency(GetParam());
    const PageBytes all = residency.Of(Address(0), kPages * page_bytes);
    return all.resident == 4 * page_bytes && all.swapped == 0 &&
           residency.Of(Address(999), page_bytes).resident == page_bytes;
  }));
  EXPECT_EQ(Residency(GetParam()).Of(Address(0), 3 * page_bytes).resident, 0u);
}

TEST_P(ResidencyTest, CountsTheBytesOfPartsOfPages) {
  EXPECT_TRUE(HoldsSoon([this] {
    Touch(3);
    Residency residency(GetParam());
    return residency.Of(Address(3) + 10, 20).resident == 20 &&
           residency.Of(Address(3) - 10, 20).resident == 10 &&
           residency.Of(Address(4) - 10, 20).resident == 10;
  }));
  EXPECT_EQ(Residency(GetParam()).Of(Address(3), 0).resident, 0u);
}

TEST_P(ResidencyTest, MemoryThatWasGivenBackIsGone) {
  EXPECT_TRUE(HoldsSoon([this] {
    for (size_t page = 0; page < 10; ++page) Touch(page);
    madvise(memory_, 4 * page_bytes, MADV_DONTNEED);
    return Residency(GetParam()).Of(Address(0), 10 * page_bytes).resident == 6 * page_bytes;
  }));
}

TEST_P(ResidencyTest, KeepsErrno) {
  errno = EDOM;
  {
    Residency(GetParam()).Of(Address(0), page_bytes);
  }
  EXPECT_EQ(errno, EDOM);
}

INSTANTIATE_TEST_SUITE_P(Sources, ResidencyTest,
                         ::testing::Values("/proc/self/pagemap", "/no/pagemap", "/dev/null"));

// 4 GiB, of which one half is there as far as the kernel fills it in beforehand. What the parts say
// is compared with the sum of ranges that are short enough to be read as wholes.
TEST(ResidencyOfLongRangesTest, PartsStandForTheRest) {
  constexpr size_t kBytes = size_t{4} << 30;
  constexpr size_t kFile = size_t{64} << 20;
  void* memory =
      mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "no room for " << kBytes << " bytes";
  const int fd = memfd_create("pages", 0);
  ASSERT_EQ(ftruncate(fd, kFile), 0);
  auto* start = static_cast<char*>(memory);
  for (size_t at = 0; at < kBytes / 2; at += kFile) {
    ASSERT_NE(mmap(start + at, kFile, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_POPULATE,
                   fd, 0),
              MAP_FAILED);
  }
  const auto address = reinterpret_cast<uintptr_t>(memory);
  EXPECT_TRUE(HoldsSoon([address] {
    Residency residency;
    uint64_t exact = 0;
    for (size_t at = 0; at < kBytes; at += kFile)
      exact += residency.Of(address + at, kFile).resident;
    const uint64_t estimate = residency.Of(address, kBytes).resident;
    return estimate + kBytes / 100 >= exact && estimate <= exact + kBytes / 100;
  }));
  EXPECT_LE(Residency().Of(address, kBytes / 2).resident, kBytes / 2);
  munmap(memory, kBytes);
  close(fd);
}

TEST(PagesOfTest, RowsInAnyOrderGetTheirOwnPages) {
  if (!KernelTellsPages()) GTEST_SKIP() << "the kernel does not tell which pages are resident";
  char* memory = MapPages(4);
  ASSERT_NE(memory, nullptr);
  ProfileRow rows[3];
  for (size_t i = 0; i < 3; ++i) {
    rows[i].sample.address = reinterpret_cast<uintptr_t>(memory) + (3 - i) * page_bytes;
    rows[i].sample.allocated = 100 + i;
  }
  EXPECT_TRUE(HoldsSoon([&rows, memory] {
    memory[2 * page_bytes] = 'x';
    const Scratch<PageBytes> pages = PagesOf(rows);
    return pages.size() == 3 && pages[0].resident == 0 && pages[1].resident == 101 &&
           pages[2].resident == 0;
  }));
  EXPECT_EQ(PagesOf({}).size(), 0u);
  munmap(memory, 4 * page_bytes);
}

}  // namespace
}  // namespace tcmalloc
