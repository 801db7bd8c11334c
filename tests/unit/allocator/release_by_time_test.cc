// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory that is not used goes back as time passes, on a clock of the test's own.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "fakes/fake_file.h"
#include "heap/heap.h"
#include "page_heap/huge/huge_page.h"
#include "system/system_calls.h"
#include "unit/bytes.h"

namespace tcmalloc::testing {
namespace {

constexpr uint64_t kSecond = 1'000'000'000;

constinit std::atomic<uint64_t> now{kSecond};

class ReleaseByTimeTest : public ::testing::TestWithParam<size_t> {
 protected:
  ReleaseByTimeTest() {
    heap.EnsureInitialized();
    // Allocations that are served by a cache tell the heap nothing.
    SlowPath slow_path;
    slow_path.Shed(Length::Max(), ReleaseCause::kProgram);
    system_calls.clock_gettime = [](clockid_t, timespec* time) {
      const uint64_t ns = now.load();
      *time = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
      return 0;
    };
    heap.housekeeping().set_half_life(kSecond);
    Pass(20);
  }
  ~ReleaseByTimeTest() override {
    heap.housekeeping().set_half_life(0);
    heap.housekeeping().set_release_speed(0);
    system_calls = real_system_calls;
  }

  static void Pass(uint64_t seconds) { now += seconds * kSecond; }

  static void AllocateAndFree(size_t size, size_t bytes) {
    std::vector<void*> blocks(bytes / size);
    for (void*& block : blocks) {
      block = Allocate(size);
      std::memset(block, 1, size);
    }
    for (void* block : blocks) Deallocate(block);
  }

  // Bytes that may be resident.
  static size_t Resident() { return heap.page_heap().stats().committed().bytes(); }
  static Length Released(ReleaseCause cause) { return heap.page_heap().stats().released(cause); }
};

// Uses sizes between, because allocations that are served by caches tell the heap nothing.
TEST_P(ReleaseByTimeTest, AThousandAllocationsAfterAnIdleTimeGiveItBack) {
  AllocateAndFree(GetParam(), 64 * kMiB);
  EXPECT_GE(Resident(), 48 * kMiB);
  const Length released = Released(ReleaseCause::kAllocator);
  Pass(10);
  std::vector<void*> blocks;
  for (size_t i = 0; i < 1000; ++i) blocks.push_back(Allocate(1000 + i % 1000));
  EXPECT_LE(Resident(), 8 * kMiB);
  EXPECT_GE(Released(ReleaseCause::kAllocator) - released, Length::FromBytesCeil(40 * kMiB));
  for (void* block : blocks) Deallocate(block);
}

// Memory taken before the pause began, however much, was not taken during it.
TEST_P(ReleaseByTimeTest, ABusyTimeBeforeTheIdleTimeKeepsNothing) {
  constexpr size_t kLarge = size_t{300} << 10;
  AllocateAndFree(kLarge, 128 * kMiB);
  AllocateAndFree(kLarge, 128 * kMiB);
  EXPECT_GE(Resident(), 96 * kMiB);
  Pass(10);
  std::vector<void*> blocks;
  for (size_t i = 0; i < 1000; ++i) blocks.push_back(Allocate(GetParam() + i % 1000));
  const size_t live = 1000 * GetParam();
  EXPECT_LE(Resident(), live + live / 4 + 16 * kMiB);
  for (void* block : blocks) Deallocate(block);
}

TEST_P(ReleaseByTimeTest, TheBackgroundWorkNeedsNoAllocation) {
  const size_t before = Resident();
  AllocateAndFree(GetParam(), 64 * kMiB);
  const Length released = Released(ReleaseCause::kBackground);
  for (int i = 0; i < 10 * ReleaseDecay::kSteps; ++i) {
    const uint64_t wait = heap.housekeeping().RunAll();
    EXPECT_GE(wait, kSecond / ReleaseDecay::kSteps);
    EXPECT_LE(wait, kSecond);
    now += kSecond / ReleaseDecay::kSteps;
  }
  EXPECT_LE(Resident(), before + 4 * kMiB);
  EXPECT_GE(Released(ReleaseCause::kBackground) - released, Length::FromBytesCeil(40 * kMiB));
}

TEST_P(ReleaseByTimeTest, ThreadsThatSleepGiveBackWhatTheyCached) {
  std::atomic<int> stage{0};
  std::thread sleeper([&] {
    AllocateAndFree(GetParam(), 16 * kMiB);
    stage = 1;
    stage.notify_all();
    stage.wait(1);
  });
  stage.wait(0);
  const size_t cached = heap.caches().stats().cached_bytes;
  for (int i = 0; i < 20 * ReleaseDecay::kSteps; ++i) {
    heap.housekeeping().RunAll();
    now += kSecond / ReleaseDecay::kSteps;
  }
  EXPECT_LE(heap.caches().stats().cached_bytes, cached / 2);
  stage = 2;
  stage.notify_all();
  sleeper.join();
}

TEST_P(ReleaseByTimeTest, WithoutAHalfLifeNothingGoes) {
  heap.housekeeping().set_half_life(0);
  AllocateAndFree(GetParam(), 64 * kMiB);
  const size_t before = Resident();
  Pass(1000);
  for (int i = 0; i < 1000; ++i) Deallocate(Allocate(8 * (i % 32) + GetParam()));
  // A thread that follows the limits of cgroups comes again; else none has to.
  EXPECT_EQ(heap.housekeeping().RunAll() == 0, !heap.limits().follows_cgroup());
  EXPECT_GE(Resident(), before - kMiB);
}

constinit std::atomic<size_t> released_bytes{0};

// The clock goes on by a tenth of a millisecond whenever somebody looks at it: about what a piece
// of the work takes.
TEST_P(ReleaseByTimeTest, NoAllocationReleasesMoreThanAFewPieces) {
  AllocateAndFree(GetParam(), 64 * kMiB);
  Pass(10);
  system_calls.clock_gettime = [](clockid_t, timespec* time) {
    const uint64_t ns = now += 100'000;
    *time = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
    return 0;
  };
  system_calls.madvise = [](void* start, size_t bytes, int advice) {
    if (advice == MADV_DONTNEED) released_bytes += bytes;
    return real_system_calls.madvise(start, bytes, advice);
  };
  system_calls.process_madvise = [](int process, const iovec* ranges, size_t n, int advice,
                                    unsigned flags) {
    for (size_t i = 0; i < n; ++i) released_bytes += ranges[i].iov_len;
    return real_system_calls.process_madvise(process, ranges, n, advice, flags);
  };
  const size_t before = Resident();
  size_t most = 0;
  std::vector<void*> blocks;
  for (size_t i = 0; i < 1000; ++i) {
    released_bytes = 0;
    blocks.push_back(Allocate(1000 + i % 1000));
    most = std::max(most, released_bytes.load());
  }
  EXPECT_LE(most, 4 * kHugePageSize);
  EXPECT_GE(before - Resident(), 32 * kMiB) << "there was something to release";
  for (void* block : blocks) Deallocate(block);
}

// Each size touches the ends of blocks that lie elsewhere than those of the size before. What is
// resident is the test's own figure: the real one depends on hugepages and on sanitizers.
class ReleaseByCycleTest : public ReleaseByTimeTest {
 protected:
  // Where each step looks through the whole heap, its cost is the square of this.
  static constexpr size_t kBlocks = TCMALLOC_CHECK_LEVEL == 2 ? 500 : 2000;

  void RunCycles(size_t size) {
    resident_pages_ += 2 * kBlocks;
    FakeFile statm("0 " + std::to_string(resident_pages_) + " 0\n");
    std::vector<void*> blocks(kBlocks);
    for (int cycle = 0; cycle < 8; ++cycle) {
      for (void*& block : blocks) {
        block = Allocate(size);
        std::memset(block, 1, 1);
        std::memset(static_cast<char*>(block) + size - 1, 1, 1);
      }
      for (void* block : blocks) Deallocate(block);
    }
  }

 private:
  size_t resident_pages_ = 0;
};

TEST_P(ReleaseByCycleTest, WhatNoCycleUsesGoesBackWithoutAnyTime) {
  RunCycles(GetParam());
  const Length released = Released(ReleaseCause::kAllocator);
  for (size_t i = 1; i <= 16; ++i) RunCycles(GetParam() + i * (size_t{20} << 10));
  EXPECT_GE(Released(ReleaseCause::kAllocator) - released,
            Length::FromBytesCeil(kBlocks * GetParam()));
}

TEST_P(ReleaseByCycleTest, WithoutAHalfLifeItStays) {
  heap.housekeeping().set_half_life(0);
  for (size_t i = 0; i <= 16; ++i) RunCycles(GetParam() + i * (size_t{20} << 10));
  EXPECT_GE(heap.page_heap().stats().free, Length::FromBytesCeil(kBlocks * GetParam()));
}

INSTANTIATE_TEST_SUITE_P(LargeBlocks, ReleaseByCycleTest, ::testing::Values(size_t{300} << 10));

// On so many spans between others in use, and no other free ones.
class ReleaseSpeedTest : public ReleaseByTimeTest {
 protected:
  static constexpr uint64_t kSpeed = kMiB + 100;
  static constexpr size_t kSpan = size_t{256} << 10;

  ReleaseSpeedTest() {
    heap.housekeeping().set_half_life(0);
    for (size_t i = 0; i < 2 * kSpans; ++i) blocks_.push_back(Allocate(kSpan + 1));
    // The order of addresses is not that of allocation, where holes were filled.
    std::sort(blocks_.begin(), blocks_.end());
    heap.page_heap().ReleaseAtLeast(Length::Max());
  }
  ~ReleaseSpeedTest() override {
    FreeSpans();
    for (size_t i = 1; i < blocks_.size(); i += 2) Deallocate(blocks_[i]);
  }

  void FreeSpans() {
    for (size_t i = 0; i < blocks_.size(); i += 2) Deallocate(std::exchange(blocks_[i], nullptr));
  }
  // How much goes in the rounds of so many seconds.
  static size_t Run(int seconds) {
    const Length before = Released(ReleaseCause::kBackground);
    const size_t resident = Resident();
    for (int i = 0; i < seconds; ++i) {
      Pass(1);
      EXPECT_EQ(heap.housekeeping().RunAll(), kSecond);
    }
    const size_t released = (Released(ReleaseCause::kBackground) - before).bytes();
    EXPECT_EQ(released, resident - Resident());
    return released;
  }

 private:
  static constexpr size_t kSpans = 200;

  std::vector<void*> blocks_;
};

TEST_P(ReleaseSpeedTest, GivesBackSoManyBytesASecond) {
  FreeSpans();
  heap.housekeeping().set_release_speed(kSpeed);
  for (const int seconds : {1, 20}) {
    const size_t due = static_cast<size_t>(seconds) * kSpeed;
    const size_t released = Run(seconds);
    EXPECT_GE(released + kSpan, due);
    EXPECT_LE(released, due + 2 * kSpan);
  }
}

TEST_P(ReleaseSpeedTest, CountsFromWhenItIsSet) {
  FreeSpans();
  Pass(1000);
  heap.housekeeping().set_release_speed(kSpeed);
  heap.housekeeping().RunAll();
  EXPECT_LE(Run(1), kSpeed + 2 * kSpan);
  heap.housekeeping().set_release_speed(UINT64_MAX);
  Pass(1'000'000);
  heap.housekeeping().RunAll();
  EXPECT_EQ(heap.page_heap().stats().free, Length(0)) << "all there is";
}

TEST_P(ReleaseSpeedTest, WhatIsNotThereIsNotOwed) {
  heap.housekeeping().set_release_speed(kSpeed);
  EXPECT_EQ(Run(100), 0u);
  FreeSpans();
  EXPECT_LE(Run(1), kSpeed + 2 * kSpan);
}

INSTANTIATE_TEST_SUITE_P(OneSize, ReleaseSpeedTest, ::testing::Values(100));

TEST_P(ReleaseByTimeTest, WithASpeedTheRoundsAreASecondApartAtMost) {
  heap.housekeeping().set_half_life(100 * kSecond);
  heap.housekeeping().set_release_speed(1);
  EXPECT_EQ(heap.housekeeping().RunAll(), kSecond);
}

INSTANTIATE_TEST_SUITE_P(Sizes, ReleaseByTimeTest, ::testing::Values(100, 4096, 200'000));

}  // namespace
}  // namespace tcmalloc::testing
