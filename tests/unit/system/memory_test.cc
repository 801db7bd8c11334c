// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/bits.h"
#include "fakes/fake_address_space.h"
#include "fakes/fault_injection.h"
#include "fakes/filled.h"
#include "system/auxv.h"
#include "system/region_name.h"
#include "unit/bytes.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::CallsSeen;
using ::tcmalloc::testing::FakeAddressSpace;
using ::tcmalloc::testing::FaultMode;
using ::tcmalloc::testing::FaultPlan;
using ::tcmalloc::testing::InjectFaults;
using ::tcmalloc::testing::IsZero;
using ::tcmalloc::testing::ScopedFaultInjection;
using ::tcmalloc::testing::SystemCall;
using testing::kGiB;
using testing::kKiB;
using testing::kMiB;

constexpr uintptr_t kLimit = 1024 * kGiB;
constexpr uintptr_t kHint = 200 * kGiB;

uintptr_t Address(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
uintptr_t Address(const MemoryBlock& block) { return Address(block.start); }
void* Pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// On the fake address space, with the usual window.
class SystemMemoryTest : public ::testing::Test {
 protected:
  void SetUp() override { Configure({}); }
  void Configure(SystemMemory::Config config) {
    config.window_limit = kLimit;
    if (config.hint_start == 0) config.hint_start = kHint;
    memory_.Configure(config);
  }

  FakeAddressSpace space_;
  SystemMemory memory_;
};

TEST_F(SystemMemoryTest, BlocksLieSideBySideFromTheHintOn) {
  uintptr_t expected = kHint;
  for (size_t bytes : {4 * kKiB, 128 * kKiB, 8 * kMiB, 12 * kKiB}) {
    const MemoryBlock block = memory_.Allocate(bytes, 4 * kKiB);
    EXPECT_EQ(Address(block), expected);
    EXPECT_EQ(block.bytes, bytes);
    EXPECT_TRUE(block.zeroed);
    expected += bytes;
  }
  EXPECT_EQ(memory_.stats().outside_window, 0u);
  EXPECT_EQ(memory_.stats().allocations, 4u);
  EXPECT_EQ(memory_.stats().mmap_bytes, space_.mapped_bytes());
}

TEST_F(SystemMemoryTest, RoundsUpToAlignmentAndKernelPage) {
  EXPECT_EQ(memory_.Allocate(1, 1).bytes, 4 * kKiB);
  EXPECT_EQ(memory_.Allocate(0, 1).bytes, 4 * kKiB);
  EXPECT_EQ(memory_.Allocate(4 * kKiB + 1, 8 * kKiB).bytes, 8 * kKiB);
  const MemoryBlock block = memory_.Allocate(3 * kMiB, 2 * kMiB);
  EXPECT_EQ(block.bytes, 4 * kMiB);
  EXPECT_TRUE(IsAligned(Address(block), 2 * kMiB));
}

TEST_F(SystemMemoryTest, StridesOverTakenAddresses) {
  space_.Occupy(kHint + 4 * kKiB, kGiB);
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_GE(Address(block), kHint + 4 * kKiB + kGiB);
  EXPECT_LT(Address(block), kLimit);
  const MemoryBlock next = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(Address(next), Address(block) + kMiB);
}

TEST_F(SystemMemoryTest, LetsTheKernelChooseWhereAllHintsAreTaken) {
  space_.Occupy(kGiB, kLimit - kGiB);
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  ASSERT_NE(block.start, nullptr);
  EXPECT_GT(Address(block), kLimit);
  EXPECT_LE(space_.mmap_calls(), 8);
  EXPECT_EQ(memory_.stats().outside_window, 1u);
}

// Windows as far as they were moved, none beyond this.
uintptr_t farthest_window;
std::vector<uintptr_t> windows;

uintptr_t MoveWindow(uintptr_t end) {
  errno = EPERM;
  if (end > farthest_window) return 0;
  windows.push_back(AlignUp(end, kGiB));
  return windows.back();
}

class GrowingWindowTest : public SystemMemoryTest {
 protected:
  static constexpr uintptr_t kFirstLimit = 32 * kGiB;
  static constexpr uintptr_t kStart = kFirstLimit - 64 * kMiB;

  void SetUp() override {
    farthest_window = kLimit;
    windows.clear();
    memory_.Configure(
        {.window_limit = kFirstLimit, .extend_window = MoveWindow, .hint_start = kStart});
  }
};

TEST_F(GrowingWindowTest, WindowGrowsWithTheHeap) {
  memory_.Allocate(64 * kMiB, 4 * kKiB);
  EXPECT_TRUE(windows.empty());
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(Address(block), kFirstLimit);
  EXPECT_EQ(windows, (std::vector<uintptr_t>{kFirstLimit + kGiB}));
  memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(windows.size(), 1u);
  EXPECT_EQ(memory_.stats().outside_window, 0u);
}

TEST_F(GrowingWindowTest, LargeBlocksLieInItToo) {
  const MemoryBlock block = memory_.Allocate(2 * kFirstLimit, 4 * kKiB);
  EXPECT_EQ(Address(block), kStart);
  EXPECT_EQ(memory_.stats().outside_window, 0u);
}

TEST_F(GrowingWindowTest, ALargeBlockThatItCannotHoldLeavesItToOthers) {
  farthest_window = kFirstLimit;
  EXPECT_GT(Address(memory_.Allocate(kFirstLimit / 2, 4 * kKiB)), kFirstLimit);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), kStart);
}

TEST_F(GrowingWindowTest, ContinuesBelowTheHintWhereTheWindowStays) {
  farthest_window = kFirstLimit + kGiB;
  memory_.Allocate(64 * kMiB, 4 * kKiB);
  EXPECT_EQ(Address(memory_.Allocate(kGiB, 4 * kKiB)), kFirstLimit);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), 4 * kGiB);
  // Here it ends at the hint, and is not asked for more.
  farthest_window = kLimit;
  EXPECT_GT(Address(memory_.Allocate(kFirstLimit, 4 * kKiB)), kFirstLimit + kGiB);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), 4 * kGiB + kMiB);
  EXPECT_EQ(windows.size(), 1u);
}

TEST_F(SystemMemoryTest, ContinuesBelowTheHintWhereTheWindowEnds) {
  Configure({.hint_start = kLimit - 64 * kMiB});
  const MemoryBlock last = memory_.Allocate(64 * kMiB, 4 * kKiB);
  EXPECT_EQ(Address(last) + last.bytes, kLimit);
  const MemoryBlock wrapped = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(Address(wrapped), 4 * kGiB);
  EXPECT_EQ(memory_.stats().outside_window, 0u);
}

TEST_F(SystemMemoryTest, HintsEndWithTheSecondRange) {
  Configure({.hint_start = 4 * kGiB + 2 * kMiB});
  space_.Occupy(4 * kGiB + 2 * kMiB, kLimit - 4 * kGiB - 2 * kMiB);
  size_t below = 0;
  for (int i = 0; i < 40; ++i) {
    const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
    ASSERT_NE(block.start, nullptr);
    if (Address(block) < kLimit) ++below;
  }
  EXPECT_EQ(below, 2u);
  const int calls = space_.mmap_calls();
  memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(space_.mmap_calls(), calls + 1);
}

TEST_F(SystemMemoryTest, AddressSpaceThatEndsBelowTheHint) {
  space_.set_end(128 * kGiB);
  space_.set_next_choice(127 * kGiB);
  ASSERT_NE(memory_.Allocate(kMiB, 4 * kKiB).start, nullptr);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), 4 * kGiB);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), 4 * kGiB + kMiB);
}

TEST_F(SystemMemoryTest, BlockTooLargeForTheWindowKeepsTheHint) {
  const MemoryBlock large = memory_.Allocate(kLimit / 4, 4 * kKiB);
  EXPECT_GT(Address(large), kLimit);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), kHint);
}

TEST_F(SystemMemoryTest, KernelWithoutNoreplaceMapsElsewhere) {
  space_.set_knows_noreplace(false);
  space_.Occupy(kHint, kMiB);
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  ASSERT_NE(block.start, nullptr);
  EXPECT_EQ(space_.mapped_bytes(), 2 * kMiB);
  const MemoryBlock aligned = memory_.Allocate(4 * kMiB, 4 * kMiB);
  EXPECT_TRUE(IsAligned(Address(aligned), 4 * kMiB));
  EXPECT_EQ(memory_.stats().mmap_bytes, space_.mapped_bytes() - kMiB);
}

TEST_F(SystemMemoryTest, AlignsByTrimmingWhereThereAreNoHints) {
  SystemMemory memory;
  for (size_t alignment = 4 * kKiB; alignment <= 4 * kGiB; alignment *= 2) {
    space_.set_next_choice((uintptr_t{1} << 46) - 4 * kKiB * (alignment / kMiB + 3));
    const size_t before = space_.mapped_bytes();
    const MemoryBlock block = memory.Allocate(alignment, alignment);
    ASSERT_NE(block.start, nullptr);
    EXPECT_TRUE(IsAligned(Address(block), alignment));
    EXPECT_EQ(space_.mapped_bytes() - before, block.bytes);
    EXPECT_TRUE(space_.IsMapped(Address(block)));
    EXPECT_TRUE(space_.IsMapped(Address(block) + block.bytes - 1));
  }
  EXPECT_EQ(memory.stats().mmap_bytes, space_.mapped_bytes());
}

TEST_F(SystemMemoryTest, CountsWhatCannotBeTrimmed) {
  SystemMemory memory;
  space_.set_munmap_fails(true);
  space_.set_next_choice((uintptr_t{1} << 46) - 4 * kKiB);
  const MemoryBlock block = memory.Allocate(kMiB, kMiB);
  EXPECT_TRUE(IsAligned(Address(block), kMiB));
  EXPECT_GT(memory.stats().mmap_bytes, kMiB);
  EXPECT_EQ(memory.stats().mmap_bytes, space_.mapped_bytes());
}

TEST_F(SystemMemoryTest, ImpossibleSizesFail) {
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - 1, SIZE_MAX - 4095, SIZE_MAX / 2, SIZE_MAX / 2 + 1,
                       (size_t{1} << 48) + 1}) {
    for (size_t alignment : {size_t{1}, 4 * kKiB, kMiB, size_t{1} << 63}) {
      errno = 0;
      EXPECT_EQ(memory_.Allocate(bytes, alignment).start, nullptr);
      EXPECT_EQ(errno, ENOMEM);
    }
  }
  EXPECT_EQ(memory_.Allocate(1, size_t{1} << 63).start, nullptr);
  EXPECT_EQ(space_.mapped_bytes(), 0u);
  EXPECT_EQ(memory_.stats().failures, 25u);
}

TEST_F(SystemMemoryTest, UnmappedBlockIsTheNextOneAgain) {
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_TRUE(memory_.Unmap(block.start, block.bytes));
  EXPECT_EQ(space_.mapped_bytes(), 0u);
  EXPECT_EQ(memory_.stats().mmap_bytes, 0u);
  EXPECT_EQ(memory_.stats().peak_bytes, kMiB);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 4 * kKiB)), Address(block));
  space_.set_munmap_fails(true);
  EXPECT_FALSE(memory_.Unmap(block.start, block.bytes));
  EXPECT_EQ(memory_.stats().mmap_bytes, kMiB);
}

TEST_F(SystemMemoryTest, FallsBackToTheBreakAndComesBack) {
  const uintptr_t program_break = space_.program_break();
  space_.set_mmap_fails(true);
  const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
  EXPECT_EQ(Address(block), program_break);
  EXPECT_TRUE(block.zeroed);
  EXPECT_EQ(memory_.stats().sbrk_bytes, kMiB);
  space_.set_mmap_fails(false);
  EXPECT_EQ(Address(memory_.Allocate(kMiB, 8 * kKiB)), kHint);
  EXPECT_EQ(memory_.stats().peak_bytes, 2 * kMiB);
}

TEST_F(SystemMemoryTest, SkipsWhatItIsToldToSkip) {
  Configure({.skip_mmap = true});
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_EQ(Address(block), space_.program_break() - kMiB);
  EXPECT_EQ(space_.mmap_calls(), 0);

  Configure({.skip_sbrk = true});
  const uintptr_t program_break = space_.program_break();
  space_.set_mmap_fails(true);
  EXPECT_EQ(memory_.Allocate(kMiB, 4 * kKiB).start, nullptr);
  EXPECT_EQ(space_.program_break(), program_break);

  Configure({.skip_mmap = true, .skip_sbrk = true});
  EXPECT_EQ(memory_.Allocate(kMiB, 4 * kKiB).start, nullptr);
}

TEST_F(SystemMemoryTest, BreakThatIsNotAligned) {
  Configure({.skip_mmap = true});
  space_.set_break(0x10001234);
  const MemoryBlock block = memory_.Allocate(kMiB, 64 * kKiB);
  EXPECT_EQ(Address(block), 0x10010000u);
  EXPECT_EQ(space_.program_break(), 0x10010000u + kMiB);
  EXPECT_EQ(memory_.stats().sbrk_bytes, kMiB + 0x10010000 - 0x10001234);
}

TEST_F(SystemMemoryTest, SomebodyMovesTheBreakMeanwhile) {
  Configure({.skip_mmap = true});
  space_.set_break(0x10000000);
  space_.set_after_break_read([&] { space_.set_break(space_.program_break() + 0x1234); });
  const MemoryBlock block = memory_.Allocate(kMiB, 64 * kKiB);
  EXPECT_EQ(Address(block), 0x10010000u);
  EXPECT_GE(space_.program_break(), Address(block) + kMiB);

  // Again, between the two pieces that make up one block.
  space_.set_after_break_move([&] { space_.set_break(space_.program_break() + 0x10); });
  EXPECT_EQ(memory_.Allocate(kMiB, 64 * kKiB).start, nullptr);
}

TEST_F(SystemMemoryTest, MemoryAtTheBreakGoesBack) {
  Configure({.skip_mmap = true});
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_TRUE(memory_.Unmap(block.start, block.bytes));
  EXPECT_EQ(memory_.stats().sbrk_bytes, 0u);
  EXPECT_EQ(space_.program_break(), Address(block));
}

TEST_F(SystemMemoryTest, MemoryBelowTheBreakStays) {
  Configure({.skip_mmap = true});
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  space_.set_break(space_.program_break() + 0x10);
  EXPECT_FALSE(memory_.Unmap(block.start, block.bytes));
  EXPECT_EQ(memory_.stats().sbrk_bytes, kMiB);
}

struct Provided {
  SystemMemory* memory = nullptr;  // null: nothing is had
  uintptr_t skipped = 0;           // bytes of its block that are not passed on
  void* foreign = nullptr;         // what is passed on instead
  size_t calls = 0;
};
Provided provided;

void* Provide(size_t bytes, size_t* actual, size_t alignment) {
  ++provided.calls;
  if (provided.foreign != nullptr) return provided.foreign;
  if (provided.memory == nullptr) return nullptr;
  const MemoryBlock block = provided.memory->AllocateFromSystem(bytes, alignment);
  *actual = block.bytes - provided.skipped;
  return Pointer(Address(block) + provided.skipped);
}

TEST_F(SystemMemoryTest, AProviderMayHaveLittle) {
  EXPECT_FALSE(memory_.IsFinite());
  memory_.set_provider(Provide);
  EXPECT_TRUE(memory_.IsFinite());
  memory_.set_provider(nullptr);
  EXPECT_FALSE(memory_.IsFinite());
}

TEST_F(SystemMemoryTest, AProviderAloneIsAsked) {
  provided = {};
  memory_.set_provider(Provide);
  errno = 0;
  EXPECT_EQ(memory_.Allocate(kMiB, 8 * kKiB).start, nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(provided.calls, 1u);
  EXPECT_EQ(memory_.stats().failures, 1u);
  memory_.set_provider(nullptr);
  EXPECT_NE(memory_.Allocate(kMiB, 8 * kKiB).start, nullptr);
  EXPECT_EQ(provided.calls, 1u);
}

TEST_F(SystemMemoryTest, WhatAProviderPassesOnIsTheSystems) {
  provided = {.memory = &memory_};
  memory_.set_provider(Provide);
  const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
  EXPECT_EQ(Address(block), kHint);
  EXPECT_EQ(block.bytes, kMiB);
  EXPECT_FALSE(block.zeroed);
  EXPECT_EQ(memory_.stats().mmap_bytes, kMiB);
  EXPECT_EQ(memory_.stats().allocations, 1u);
  EXPECT_TRUE(memory_.Release(block.start, block.bytes));
}

TEST_F(SystemMemoryTest, WhatAProviderHasFromElsewhereStays) {
  provided = {.foreign = Pointer(700 * kGiB)};
  memory_.set_provider(Provide);
  const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
  EXPECT_EQ(Address(block), 700 * kGiB);
  EXPECT_EQ(block.bytes, kMiB);
  EXPECT_EQ(memory_.stats().mmap_bytes, kMiB);
  EXPECT_FALSE(memory_.Release(block.start, block.bytes));
  EXPECT_FALSE(memory_.Unmap(block.start, block.bytes));
}

TEST_F(SystemMemoryTest, AProviderThatGivesTooLittleGivesNothing) {
  memory_.set_provider(Provide);
  provided = {.memory = &memory_, .skipped = 8 * kKiB};
  EXPECT_EQ(memory_.Allocate(kMiB, 8 * kKiB).start, nullptr);
  provided = {.foreign = Pointer(700 * kGiB + 4 * kKiB)};
  EXPECT_EQ(memory_.Allocate(kMiB, 8 * kKiB).start, nullptr);
}

TEST_F(SystemMemoryTest, ReleasesOnlyWholeKernelPages) {
  EXPECT_TRUE(memory_.Release(Pointer(0x100001), 3 * 4096));
  EXPECT_EQ(space_.advised_start(), 0x101000u);
  EXPECT_EQ(space_.advised_bytes(), 2u * 4096);
  EXPECT_FALSE(memory_.Release(Pointer(0x100001), 4096));
  EXPECT_FALSE(memory_.Release(Pointer(0x100000), 4095));
  EXPECT_FALSE(memory_.Release(Pointer(0x100000), 0));
  EXPECT_EQ(memory_.stats().releases, 1u);
  EXPECT_EQ(memory_.stats().released_bytes, 2u * 4096);
  EXPECT_EQ(memory_.stats().release_failures, 0u);
}

TEST_F(SystemMemoryTest, ReleaseCanBeDisabled) {
  Configure({.disable_release = true});
  EXPECT_FALSE(memory_.Release(Pointer(0x100000), kMiB));
  EXPECT_EQ(space_.advised_bytes(), 0u);
}

TEST_F(SystemMemoryTest, ReleaseThatTheKernelRefuses) {
  system_calls.madvise = [](void*, size_t, int) {
    errno = ENOMEM;
    return -1;
  };
  EXPECT_FALSE(memory_.Release(Pointer(0x100000), kMiB));
  EXPECT_EQ(memory_.stats().release_failures, 1u);
  EXPECT_EQ(memory_.stats().released_bytes, 0u);
}

// Runs of a page, one in every second page.
template <size_t kCount>
std::array<ReleaseRequest, kCount> PageRequests() {
  std::array<ReleaseRequest, kCount> requests;
  for (size_t i = 0; i < kCount; ++i) requests[i] = {Pointer(0x100000 + i * 0x2000), 4096};
  return requests;
}

constinit int together_calls = 0;
constinit ssize_t together_result = 0;
constinit int together_errno = 0;

ssize_t ReleaseTogether(int, const iovec*, size_t, int, unsigned) {
  ++together_calls;
  errno = together_errno;
  return together_result;
}

// `result` and `error` are the answer of process_madvise.
void AnswerTogether(ssize_t result, int error = 0) {
  together_calls = 0;
  together_result = result;
  together_errno = error;
  system_calls.process_madvise = ReleaseTogether;
}

TEST_F(SystemMemoryTest, ManyRunsGoByOneCall) {
  AnswerTogether(3 * 4096);
  std::array<ReleaseRequest, 3> requests = PageRequests<3>();
  memory_.Release(requests.data(), requests.size());
  for (const ReleaseRequest& request : requests) EXPECT_TRUE(request.released);
  EXPECT_EQ(together_calls, 1);
  EXPECT_EQ(space_.advised_bytes(), 0u);
  EXPECT_EQ(memory_.stats().releases, 3u);
  EXPECT_EQ(memory_.stats().released_bytes, 3u * 4096);
}

TEST_F(SystemMemoryTest, RunsThatTheOneCallLeftGoByThemselves) {
  AnswerTogether(4096 + 100);
  std::array<ReleaseRequest, 2> requests = PageRequests<2>();
  memory_.Release(requests.data(), requests.size());
  EXPECT_TRUE(requests[0].released && requests[1].released);
  EXPECT_EQ(space_.advised_start(), 0x102000u);
  EXPECT_EQ(memory_.stats().releases, 2u);
}

TEST_F(SystemMemoryTest, RunsWithoutAWholePageStay) {
  AnswerTogether(2 * 4096);
  std::array<ReleaseRequest, 3> requests = PageRequests<3>();
  requests[1].bytes = 4095;
  memory_.Release(requests.data(), requests.size());
  EXPECT_TRUE(requests[0].released && requests[2].released);
  EXPECT_FALSE(requests[1].released);
}

TEST_F(SystemMemoryTest, AKernelThatCannotReleaseTogetherIsAskedOnce) {
  for (int error : {ENOSYS, EPERM, EBADF}) {
    SystemMemory memory;
    AnswerTogether(-1, error);
    for (int i = 0; i < 2; ++i) {
      std::array<ReleaseRequest, 2> requests = PageRequests<2>();
      memory.Release(requests.data(), requests.size());
      EXPECT_TRUE(requests[0].released && requests[1].released);
    }
    EXPECT_EQ(together_calls, 1) << error;
  }
}

TEST_F(SystemMemoryTest, OneRunThatTheKernelRefusesDoesNotKeepTheOthers) {
  AnswerTogether(-1, EINVAL);
  system_calls.madvise = [](void* start, size_t, int) {
    errno = EINVAL;
    return start == Pointer(0x102000) ? -1 : 0;
  };
  for (int i = 0; i < 2; ++i) {
    std::array<ReleaseRequest, 3> requests = PageRequests<3>();
    memory_.Release(requests.data(), requests.size());
    EXPECT_TRUE(requests[0].released && requests[2].released);
    EXPECT_FALSE(requests[1].released);
  }
  EXPECT_EQ(together_calls, 2);
  EXPECT_EQ(memory_.stats().release_failures, 2u);
}

class KernelPageSizeTest : public ::testing::TestWithParam<size_t> {};

// The fake checks that every call is in whole kernel pages.
TEST_P(KernelPageSizeTest, EverythingIsInKernelPages) {
  const size_t page = GetParam();
  FakeAddressSpace space(page);
  SystemMemory memory;
  memory.Configure({.window_limit = kLimit, .hint_start = kHint});
  for (size_t bytes : {size_t{1}, 8 * kKiB, 100 * kKiB, kMiB + 1}) {
    for (size_t alignment : {8 * kKiB, kMiB}) {
      const MemoryBlock block = memory.Allocate(bytes, alignment);
      EXPECT_TRUE(IsAligned(Address(block), std::max(page, alignment)));
      EXPECT_TRUE(IsAligned(block.bytes, page));
    }
  }
  EXPECT_FALSE(memory.Release(Pointer(kHint + page / 2), page));
  EXPECT_TRUE(memory.Release(Pointer(kHint + page / 2), 2 * page));
  EXPECT_TRUE(IsAligned(space.advised_start(), page));
  EXPECT_TRUE(IsAligned(space.advised_bytes(), page));
  EXPECT_NE(AllocateMetadata(1), nullptr);
}

INSTANTIATE_TEST_SUITE_P(Sizes, KernelPageSizeTest,
                         ::testing::Values(4 * kKiB, 16 * kKiB, 64 * kKiB));

TEST(SystemMemoryFaultTest, AccountingSurvivesEveryFailedCall) {
  constexpr SystemCall kCalls[] = {SystemCall::kMmap, SystemCall::kMunmap, SystemCall::kSbrk,
                                   SystemCall::kMadvise, SystemCall::kPrctl};
  constexpr int kErrors[] = {EAGAIN, ENOMEM, EINVAL, EPERM, ENOSYS, EEXIST};
  constexpr FaultMode kModes[] = {FaultMode::kOnce, FaultMode::kFrom, FaultMode::kEvery,
                                  FaultMode::kRandom};
  for (SystemCall call : kCalls) {
    for (FaultMode mode : kModes) {
      for (uint64_t k = 1; k <= 24; ++k) {
        FaultPlan plan = {.mode = mode, .k = k, .error = kErrors[k % std::size(kErrors)]};
        ScopedFaultInjection injection;
        SystemMemory memory;
        memory.Configure({.window_limit = kLimit, .hint_start = kHint});
        InjectFaults(call, plan);
        std::vector<MemoryBlock> blocks;
        for (size_t i = 0; i < 12; ++i) {
          const size_t alignment = i % 4 == 3 ? 256 * kKiB : 8 * kKiB;
          const MemoryBlock block = memory.Allocate((i + 1) * 8 * kKiB, alignment);
          if (block.start == nullptr) continue;
          std::memset(block.start, 0x5a, block.bytes);
          blocks.push_back(block);
        }
        for (const MemoryBlock& block : blocks) {
          const bool released = memory.Release(block.start, block.bytes);
          EXPECT_EQ(IsZero(block.start, block.bytes), released);
        }
        testing::ClearFaults();
        // Once the kernel is willing again, everything works again and comes back.
        const MemoryBlock block = memory.Allocate(kMiB, 8 * kKiB);
        ASSERT_NE(block.start, nullptr);
        blocks.push_back(block);
        size_t sum = 0;
        for (const MemoryBlock& b : blocks) sum += b.bytes;
        const SystemMemoryStats stats = memory.stats();
        EXPECT_GE(stats.mmap_bytes + stats.sbrk_bytes, sum);
        if (call != SystemCall::kMunmap && call != SystemCall::kMmap) {
          EXPECT_EQ(stats.mmap_bytes, sum);
        }
        for (const MemoryBlock& b : blocks) {
          if (memory.Unmap(b.start, b.bytes)) sum -= b.bytes;
        }
        EXPECT_LE(sum, memory.stats().sbrk_bytes);
      }
    }
  }
}

// On the real address space from here on.

TEST(SystemMemoryRealTest, MemoryIsZeroWritableAndReadsAsZeroAfterRelease) {
  SystemMemory memory;
  memory.Configure({.window_limit = kLimit, .hint_start = kHint});
  for (size_t bytes : {size_t{1}, 8 * kKiB, kMiB, 40 * kMiB}) {
    for (size_t alignment : {size_t{8}, 8 * kKiB, 2 * kMiB}) {
      const MemoryBlock block = memory.Allocate(bytes, alignment);
      ASSERT_NE(block.start, nullptr);
      ASSERT_GE(block.bytes, bytes);
      EXPECT_TRUE(IsZero(block.start, block.bytes));
      std::memset(block.start, 0xff, block.bytes);
      EXPECT_TRUE(memory.Release(block.start, block.bytes));
      EXPECT_TRUE(IsZero(block.start, block.bytes));
      EXPECT_TRUE(memory.Unmap(block.start, block.bytes));
    }
  }
  EXPECT_EQ(memory.stats().mmap_bytes, 0u);
}

TEST(SystemMemoryRealTest, WhatIsTouchedIsResidentAndReadsAsZero) {
  SystemMemory memory;
  memory.Configure({});
  const size_t page = KernelPageSize();
  const MemoryBlock block = memory.Allocate(2 * page, page);
  ASSERT_NE(block.start, nullptr);
  SystemMemory::Touch(block.start);
  std::array<unsigned char, 2> resident = {};
  ASSERT_EQ(::mincore(block.start, 2 * page, resident.data()), 0);
  EXPECT_EQ(resident, (std::array<unsigned char, 2>{1, 0}));
  EXPECT_TRUE(IsZero(block.start, page));
}

TEST(SystemMemoryRealTest, MemoryFromTheBreakWorks) {
  SystemMemory memory;
  memory.Configure({.skip_mmap = true});
  // A break within a page, with bytes behind it that were used before.
  void* old = ::sbrk(3 * 4096 + 123);
  ASSERT_NE(old, Pointer(UINTPTR_MAX));
  std::memset(old, 0xff, 3 * 4096 + 123);
  ASSERT_NE(::sbrk(-4096), Pointer(UINTPTR_MAX));
  const MemoryBlock block = memory.Allocate(64 * kKiB, 8 * kKiB);
  ASSERT_NE(block.start, nullptr);
  EXPECT_TRUE(IsAligned(Address(block), 8 * kKiB));
  EXPECT_TRUE(IsZero(block.start, block.bytes));
  std::memset(block.start, 0xff, block.bytes);
  EXPECT_TRUE(memory.Release(block.start, block.bytes));
  EXPECT_TRUE(IsZero(block.start, block.bytes));
}

TEST(SystemMemoryRealTest, ReleaseKeepsPartialPages) {
  SystemMemory memory;
  const size_t page = KernelPageSize();
  const MemoryBlock block = memory.Allocate(4 * page, page);
  auto* bytes = static_cast<char*>(block.start);
  std::memset(bytes, 1, block.bytes);
  EXPECT_TRUE(memory.Release(bytes + 1, 3 * page - 2));
  EXPECT_EQ(bytes[0], 1);
  EXPECT_EQ(bytes[page - 1], 1);
  EXPECT_EQ(bytes[page], 0);
  EXPECT_EQ(bytes[2 * page - 1], 0);
  EXPECT_EQ(bytes[2 * page], 1);
  EXPECT_TRUE(memory.Unmap(block.start, block.bytes));
}

TEST(SystemMemoryRealTest, ThreadsGetDisjointBlocks) {
  SystemMemory memory;
  memory.Configure({.window_limit = kLimit, .hint_start = kHint});
  constexpr size_t kThreads = 4;
  constexpr size_t kRounds = 200;
  std::vector<std::thread> threads;
  std::atomic<int> damaged{0};
  for (size_t t = 0; t < kThreads; ++t) {
    threads.emplace_back([&memory, &damaged, t] {
      std::minstd_rand random(static_cast<unsigned>(t + 1));
      for (size_t i = 0; i < kRounds; ++i) {
        const MemoryBlock block = memory.Allocate((random() % 16 + 1) * 8 * kKiB, 8 * kKiB);
        if (!IsZero(block.start, block.bytes)) ++damaged;
        std::memset(block.start, static_cast<int>(t + 1), block.bytes);
        if (i % 3 == 0) memory.Release(block.start, block.bytes / 2);
        const auto* last = static_cast<const char*>(block.start) + block.bytes - 1;
        if (*last != static_cast<char>(t + 1)) ++damaged;
        if (!memory.Unmap(block.start, block.bytes)) ++damaged;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(damaged, 0);
  EXPECT_EQ(memory.stats().mmap_bytes, 0u);
  EXPECT_EQ(memory.stats().allocations, kThreads * kRounds);
}

// True if this kernel shows names at all, asked without the code under test.
bool KernelHasNames(void* page) {
  return real_system_calls.prctl(0x53564d41, 0, Address(page), 4096, Address("test")) == 0;
}

bool SmapsMention(const std::string& name) {
  std::ifstream file("/proc/self/smaps");
  for (std::string line; std::getline(file, line);) {
    if (line.ends_with("[anon:" + name + "]")) return true;
  }
  return false;
}

// 0 where the names are there, or where there is nothing that could show them.
int CheckRegionNames() {
  if (SmapsMention(kHeapName) || SmapsMention(kMetadataName)) return 1;
  SystemMemory memory;
  const MemoryBlock block = memory.Allocate(kMiB, 8 * kKiB);
  if (block.start == nullptr || AllocateMetadata(10) == nullptr) return 2;
  const bool named = SmapsMention(kHeapName) && SmapsMention(kMetadataName);
  return named || !KernelHasNames(block.start) ? 0 : 3;
}

int CountNamingAttempts() {
  FakeAddressSpace space;
  SystemMemory memory;
  for (int i = 0; i < 5; ++i) memory.Allocate(kMiB, 8 * kKiB);
  return space.prctl_calls();
}

// A process that finds out that the kernel has no names stops asking; hence processes of their own,
// before any other test.
TEST(RegionNameDeathTest, HeapAndMetadataAreNamed) {
  EXPECT_EXIT(_exit(CheckRegionNames()), ::testing::ExitedWithCode(0), "");
}

TEST(RegionNameDeathTest, KernelWithoutNamesIsAskedOnce) {
  EXPECT_EXIT(_exit(CountNamingAttempts()), ::testing::ExitedWithCode(1), "");
}

TEST(MetadataTest, IsZeroAndPageAligned) {
  for (size_t bytes : {size_t{1}, 4 * kKiB, 256 * kKiB}) {
    void* memory = AllocateMetadata(bytes);
    ASSERT_NE(memory, nullptr);
    EXPECT_TRUE(IsAligned(Address(memory), KernelPageSize()));
    EXPECT_TRUE(IsZero(memory, bytes));
    std::memset(memory, 1, bytes);
    EXPECT_EQ(::munmap(memory, AlignUp(bytes, KernelPageSize())), 0);
  }
  EXPECT_EQ(AllocateMetadata(SIZE_MAX), nullptr);
}

}  // namespace
}  // namespace tcmalloc
