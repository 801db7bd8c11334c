// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The samples of blocks that this program allocates by the allocator's own functions.

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <fstream>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/reallocate.h"
#include "allocator/usable_size.h"
#include "base/attributes.h"
#include "base/spin_lock.h"
#include "fakes/one_cpu.h"
#include "heap/observer.h"
#include "heap_profile/collected_profile.h"
#include "heap_profile/profile_writer.h"
#include "heap_profile/profiles.h"
#include "system/clock.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr double kSamplePeriod = 16 << 10;

size_t LiveSamples() { return sample_table.stats().samples; }

double LiveBytes() {
  double bytes = 0;
  sample_table.ForEach([&](const Sample& sample) {
    bytes += sample.weight * static_cast<double>(sample.requested);
  });
  return bytes;
}

// Five standard deviations of the estimate of `count` blocks of `size` bytes.
double Tolerance(double size, double count) {
  const double probability = -std::expm1(-size / kSamplePeriod);
  return 5 * size * std::sqrt(count * (1 - probability) / probability) + size;
}

void FreeAll(const std::vector<void*>& blocks) {
  for (void* block : blocks) Deallocate(block);
}

TEST(LiveSamplesTest, EstimateBytesOfEverySize) {
  for (const size_t size : {1, 16, 100, 1000, 5000, 20'000, 100'000, 300'000, 2'000'000}) {
    const double count = std::ceil(40e6 / static_cast<double>(size < 16 ? 400 : size)) + 20;
    std::vector<void*> blocks;
    for (int i = 0; i < static_cast<int>(count); ++i) blocks.push_back(Allocate(size));
    EXPECT_NEAR(LiveBytes(), count * static_cast<double>(size),
                Tolerance(static_cast<double>(size), count))
        << size;
    FreeAll(blocks);
    EXPECT_EQ(LiveSamples(), 0u) << size;
  }
}

TEST(LiveSamplesTest, AlignedZeroedAndReallocatedBlocksCountOnce) {
  std::vector<void*> blocks;
  for (int i = 0; i < 20'000; ++i) {
    blocks.push_back(AllocateAligned(500, 64));
    blocks.push_back(AllocateZeroed(300));
    blocks.push_back(Reallocate(Allocate(100), 700));
  }
  EXPECT_NEAR(LiveBytes(), 20'000 * 1500.0, Tolerance(500, 60'000));
  FreeAll(blocks);
  EXPECT_EQ(LiveSamples(), 0u);
}

TEST(LiveSamplesTest, KnowTheAlignmentThatWasAskedFor) {
  for (const size_t size : {20'000, 300'000, 2'000'000}) {
    for (const uint32_t alignment : {0, 64, 4096, 1 << 16}) {
      std::vector<void*> blocks;
      for (int i = 0; i < 100; ++i) {
        if (alignment != 0) {
          blocks.push_back(AllocateAligned(size, alignment));
          continue;
        }
        blocks.push_back(Allocate(size));
        blocks.push_back(AllocateZeroed(size));
        blocks.push_back(Reallocate(Allocate(100), size));
      }
      EXPECT_GT(LiveSamples(), 0u);
      sample_table.ForEach(
          [&](const Sample& sample) { EXPECT_EQ(sample.alignment, alignment) << size; });
      FreeAll(blocks);
    }
  }
}

std::atomic<int> gettid_calls{0};

// A system call takes as long as the rest of a sample's record.
TEST(LiveSamplesTest, TheKernelIsAskedOnceForTheNumberOfAThread) {
  const auto saved = system_calls.gettid;
  system_calls.gettid = [] {
    gettid_calls.fetch_add(1);
    return ::gettid();
  };
  std::vector<void*> blocks;
  uint32_t number = 0;
  std::thread thread([&] {
    for (int i = 0; i < 20'000; ++i) blocks.push_back(Allocate(64));
    number = static_cast<uint32_t>(::gettid());
  });
  thread.join();
  system_calls.gettid = saved;
  ASSERT_GT(LiveSamples(), 20u);
  EXPECT_EQ(gettid_calls.load(), 1);
  sample_table.ForEach([&](const Sample& sample) { EXPECT_EQ(sample.thread, number); });
  FreeAll(blocks);
}

TEST(LiveSamplesTest, AChildOfForkHasAnotherNumber) {
  FreeAll({Allocate(1 << 20)});
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    void* block = Allocate(1 << 20);
    bool right = LiveSamples() == 1;
    sample_table.ForEach([&](const Sample& sample) {
      right = right && sample.thread == static_cast<uint32_t>(getpid());
    });
    Deallocate(block);
    _exit(right ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST(LiveSamplesTest, ZeroedSamplesAreZero) {
  for (int round = 0; round < 200; ++round) {
    std::vector<char*> blocks;
    for (int i = 0; i < 20; ++i) blocks.push_back(static_cast<char*>(AllocateZeroed(5000)));
    for (char* block : blocks) {
      ASSERT_EQ(std::count(block, block + 5000, 0), 5000);
      std::fill_n(block, 5000, 'x');
      Deallocate(block);
    }
  }
}

// A large block is a sample with almost certainty here, so that its record must follow each change.
TEST(LiveSamplesTest, LargeBlocksGrowAndShrinkWithTheirSamples) {
  void* block = Allocate(1 << 20);
  for (const size_t size : {3 << 20, 8 << 20, 9 << 20, 2 << 20, 300 << 10}) {
    block = Reallocate(block, size);
    EXPECT_EQ(LiveSamples(), 1u) << size;
    EXPECT_GE(LiveBytes(), static_cast<double>(size)) << size;
    EXPECT_LE(LiveBytes(), static_cast<double>(size) * 1.3) << size;
  }
  Deallocate(block);
  EXPECT_EQ(LiveSamples(), 0u);
}

// Blocks that grow where they are stand for themselves, whenever they became samples. The period is
// so long that most are none at first.
TEST(LiveSamplesTest, EstimatesOfBlocksThatGrowInPlaceAreUnbiased) {
  constexpr size_t kSizes[] = {512 << 10, 1 << 20, 2 << 20};
  constexpr size_t kRoom = 4 << 20;
  constexpr int kBlocks = 4000;
  constexpr double kLongPeriod = 2e6;
  double estimate = 0;
  for (int i = 0; i < kBlocks; ++i) {
    // A block that was cut has room to grow. While there are no samples it has no chance, so that
    // all that it has comes from the bytes that it gains.
    heap.sample_period() = 0;
    void* const block = Reallocate(Allocate(kRoom), kSizes[0]);
    heap.sample_period() = static_cast<uint64_t>(kLongPeriod);
    for (const size_t size : kSizes) ASSERT_EQ(Reallocate(block, size), block);
    sample_table.ForEach([&](const Sample& sample) { estimate += sample.weight; });
    Deallocate(block);
  }
  heap.sample_period() = static_cast<uint64_t>(kSamplePeriod);
  const double gained = static_cast<double>(kSizes[2] - kSizes[0]);
  const double probability = -std::expm1(-gained / kLongPeriod);
  EXPECT_NEAR(estimate, kBlocks, 5 * std::sqrt(kBlocks * (1 - probability) / probability));
}

TEST(LiveSamplesTest, SampledBlocksHaveTheUsualUsableSize) {
  for (int i = 0; i < 20'000; ++i) {
    void* block = Allocate(1000);
    ASSERT_EQ(UsableSize(block), kSizeClasses[SizeClassFor(1000)].size);
    Deallocate(block);
  }
}

TEST(LiveSamplesTest, BlocksOfEndedThreadsAreFreedByOthers) {
  std::vector<void*> blocks[4];
  std::vector<std::thread> threads;
  for (std::vector<void*>& own : blocks) {
    threads.emplace_back([&own] {
      for (int i = 0; i < 50'000; ++i) own.push_back(Allocate(64));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_NEAR(LiveBytes(), 4 * 50'000 * 64.0, Tolerance(64, 200'000));
  for (const std::vector<void*>& own : blocks) FreeAll(own);
  EXPECT_EQ(LiveSamples(), 0u);
}

// A thread may have the header of one that ended. If it drew what that one drew, all of them would
// have samples of the same blocks, or none.
TEST(LiveSamplesTest, ThreadsOneAfterTheOtherDrawSamplesOfTheirOwn) {
  constexpr int kThreads = 1000;
  constexpr int kBlocks = 100;
  std::vector<void*> blocks;
  for (int thread = 0; thread < kThreads; ++thread) {
    std::thread([&blocks] {
      for (int i = 0; i < kBlocks; ++i) blocks.push_back(Allocate(64));
    }).join();
  }
  EXPECT_NEAR(LiveBytes(), kThreads * kBlocks * 64.0, Tolerance(64, kThreads * kBlocks));
  FreeAll(blocks);
}

// Otherwise all children of a server that forks for each request would have the same samples.
TEST(LiveSamplesTest, ChildrenOfForkDrawSamplesOfTheirOwn) {
  constexpr int kChildren = 60;
  for (const size_t size : {64, 3000}) {
    std::set<int> first_samples;
    for (int i = 0; i < kChildren; ++i) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        int bytes = 0;
        for (const size_t before = LiveSamples(); LiveSamples() == before; Allocate(size))
          bytes += static_cast<int>(size);
        _exit(bytes / 1024 % 256);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      first_samples.insert(WEXITSTATUS(status));
    }
    EXPECT_GT(first_samples.size(), 6u) << size;
  }
}

TEST(LiveSamplesTest, AChildOfForkHasTheSamplesOfItsParent) {
  std::vector<void*> blocks;
  for (int i = 0; i < 50'000; ++i) blocks.push_back(Allocate(64));
  const size_t samples = LiveSamples();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    const bool same = LiveSamples() == samples;
    FreeAll(blocks);
    _exit(same && LiveSamples() == 0 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  FreeAll(blocks);
  EXPECT_EQ(LiveSamples(), 0u);
}

// Each round has stacks of its own, whose words can be used again only where nobody reads.
TEST(LiveSamplesTest, AChildOfForkUsesStacksAgainThatAnotherThreadRead) {
  std::atomic<bool> reads = false;
  std::atomic<bool> done = false;
  std::thread thread([&] {
    const StackTable::Reader reader(stack_table);
    reads = true;
    while (!done) usleep(100);
  });
  while (!reads) usleep(100);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    size_t bytes = 0;
    for (uintptr_t i = 1; i < 40'000; ++i) {
      void* const frames[] = {reinterpret_cast<void*>(i), reinterpret_cast<void*>(~i)};
      stack_table.Release(stack_table.Add(frames));
      if (i == 10'000) bytes = stack_table.stats().bytes;
    }
    _exit(stack_table.stats().bytes <= bytes + 4096 ? 0 : 1);
  }
  int status = 0;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  done = true;
  thread.join();
}

TEST(LiveSamplesTest, ProfilesCollectWhatTheyAreAbout) {
  CollectedProfile* allocations = CollectedProfile::Begin(ProfileKind::kAllocations);
  CollectedProfile* lifetimes = CollectedProfile::Begin(ProfileKind::kLifetimes);
  ASSERT_NE(allocations, nullptr);
  ASSERT_NE(lifetimes, nullptr);
  std::vector<void*> kept;
  for (int i = 0; i < 20'000; ++i) {
    Deallocate(Allocate(1000));
    kept.push_back(Allocate(1000));
  }
  CollectedProfile* live = CollectedProfile::Take(ProfileKind::kHeap);
  allocations->End();
  lifetimes->End();
  const auto estimate = [](const CollectedProfile& profile) {
    double count = 0;
    for (const ProfileRow& row : profile.rows.rows()) count += row.sample.weight;
    return count;
  };
  const double sigma = Tolerance(1000, 20'000) / 1000;
  EXPECT_NEAR(estimate(*live), 20'000, sigma);
  EXPECT_NEAR(estimate(*allocations), 40'000, 2 * sigma);
  EXPECT_NEAR(estimate(*lifetimes), 40'000, 2 * sigma);
  double censored = 0;
  for (const ProfileRow& row : lifetimes->rows.rows())
    censored += row.censored ? row.sample.weight : 0;
  EXPECT_NEAR(censored, 20'000, sigma);
  FreeAll(kept);
  CollectedProfile* peak = CollectedProfile::Take(ProfileKind::kPeakHeap);
  EXPECT_GT(estimate(*peak), 0);
  for (CollectedProfile* profile : {live, allocations, lifetimes, peak}) profile->Delete();
}

TEST(LiveSamplesTest, HeapProfilesLeaveOutWhatIsAllocatedMeanwhile) {
  Sample late = {};
  late.weight = 1;
  late.requested = late.allocated = 1000;
  late.time_ns = MonotonicNanoseconds() + int64_t{3600} * 1'000'000'000;
  const SampleId id = sample_table.Add(late);
  ASSERT_NE(id, SampleId{0});
  CollectedProfile* profile = CollectedProfile::Take(ProfileKind::kHeap);
  for (const ProfileRow& row : profile->rows.rows())
    EXPECT_LE(row.sample.time_ns, profile->begin_ns);
  profile->Delete();
  sample_table.Remove(id);
}

size_t MappedBytes() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(sysconf(_SC_PAGESIZE));
}

class ThousandProfilesTest : public ::testing::TestWithParam<ProfileKind> {};

TEST_P(ThousandProfilesTest, LeaveTheMemoryWhereItWas) {
  const ProfileKind kind = GetParam();
  const bool begins = kind == ProfileKind::kAllocations || kind == ProfileKind::kLifetimes;
  std::vector<void*> kept;
  for (int i = 0; i < 1000; ++i) kept.push_back(Allocate(1000));
  const auto round = [kind, begins] {
    CollectedProfile* profile =
        begins ? CollectedProfile::Begin(kind) : CollectedProfile::Take(kind);
    ASSERT_NE(profile, nullptr);
    for (int i = 0; i < 200; ++i) Deallocate(Allocate(1000));
    profile->Delete();
  };
  for (int i = 0; i < 100; ++i) round();
  const size_t stacks = stack_table.stats().bytes;
  const size_t samples = sample_table.stats().mapped_bytes;
  const size_t mapped = MappedBytes();
  for (int i = 0; i < 1000; ++i) round();
  // Stacks that were not sampled before may come up.
  EXPECT_LE(stack_table.stats().bytes, stacks + 4096);
  EXPECT_EQ(sample_table.stats().mapped_bytes, samples);
  // A profile that were left behind would have at least a page.
  EXPECT_LE(MappedBytes(), mapped + (2 << 20));
  FreeAll(kept);
}
INSTANTIATE_TEST_SUITE_P(Kinds, ThousandProfilesTest,
                         ::testing::Values(ProfileKind::kHeap, ProfileKind::kPeakHeap,
                                           ProfileKind::kAllocations, ProfileKind::kLifetimes,
                                           ProfileKind::kFragmentation));

// What the program does with its other blocks happens as if there were no samples.
TEST(LiveSamplesTest, TwinsOfSmallSamplesStayInUse) {
  constexpr size_t kSize = 16;  // a thousandth of the period
  std::set<uintptr_t> blocks;
  for (int i = 0; i < 50'000; ++i) blocks.insert(reinterpret_cast<uintptr_t>(Allocate(kSize)));
  std::vector<Sample> samples;
  sample_table.ForEach([&](const Sample& sample) { samples.push_back(sample); });
  ASSERT_GT(samples.size(), 10u);
  for (const Sample& sample : samples) {
    EXPECT_TRUE(sample.keeps_twin);
    EXPECT_TRUE(blocks.contains(sample.address));
    EXPECT_FALSE(blocks.contains(sample.twin));
  }
  // Each counts once.
  EXPECT_EQ(CountSampledMemory().in_use_bytes, 0u);

  const Sample& freed = samples.front();
  Deallocate(reinterpret_cast<void*>(freed.address));
  blocks.erase(freed.address);
  void* next = Allocate(kSize);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(next), freed.twin);
  Deallocate(next);
  for (const uintptr_t block : blocks) Deallocate(reinterpret_cast<void*>(block));
  EXPECT_EQ(LiveSamples(), 0u);
}

TEST(LiveSamplesTest, TwinsOfLargerSamplesAreFreed) {
  std::vector<void*> blocks;
  for (int i = 0; i < 1000; ++i) blocks.push_back(Allocate(1000));
  ASSERT_GT(LiveSamples(), 10u);
  sample_table.ForEach([&](const Sample& sample) {
    EXPECT_FALSE(sample.keeps_twin);
    EXPECT_NE(sample.twin, 0u);
  });
  EXPECT_EQ(CountSampledMemory().in_use_bytes, LiveSamples() * 1056);
  FreeAll(blocks);
}

// A sample that moved would leave the memory of its twin to a cache.
TEST(LiveSamplesTest, SamplesOfAPageOrMoreStayWhereTheyAre) {
  constexpr size_t kSize = 32 << 10;  // twice the period
  std::vector<void*> blocks;
  for (int i = 0; i < 100; ++i) blocks.push_back(Allocate(kSize));
  const size_t samples = LiveSamples();
  ASSERT_GT(samples, 50u);
  EXPECT_EQ(CountSampledMemory().span_bytes, 0u);
  std::set<uintptr_t> addresses;
  sample_table.ForEach([&](const Sample& sample) {
    EXPECT_TRUE(sample.keeps_twin);
    EXPECT_EQ(sample.twin, sample.address);
    addresses.insert(sample.address);
  });
  // Whatever the order, each free finds its sample among those of the span, and only its own.
  size_t left = samples;
  for (const size_t first : {1, 0}) {
    for (size_t i = first; i < blocks.size(); i += 2) {
      const PageId page = PageId::Containing(blocks[i]);
      const bool is_sample = addresses.contains(reinterpret_cast<uintptr_t>(blocks[i]));
      // Outside of the window no page has a class.
      ASSERT_TRUE(!is_sample || heap.page_map().ClassAt(page) == 0);
      Deallocate(blocks[i]);
      left -= is_sample ? 1 : 0;
      ASSERT_EQ(LiveSamples(), left);
      ASSERT_EQ(heap.page_map().Get(page)->first_sample == 0 || left > 0, true);
    }
  }
  EXPECT_EQ(left, 0u);
}

// A program that touches its blocks touches no more pages than without samples. The caches of
// another CPU have other ones.
TEST(LiveSamplesTest, SamplesOfAPageOrMoreTakeNoMemory) {
  std::set<uintptr_t> addresses;
  const auto round = [&addresses] {
    std::vector<void*> blocks;
    for (size_t size = 32 << 10; size <= 256 << 10; size += 16 << 10) {
      blocks.push_back(Allocate(size));
      addresses.insert(reinterpret_cast<uintptr_t>(blocks.back()));
    }
    FreeAll(blocks);
  };
  std::thread([&] {
    EXPECT_TRUE(testing::StayOnThisCpu());
    heap.sample_period() = 0;
    for (int i = 0; i < 20; ++i) round();
    const size_t without = addresses.size();
    heap.sample_period() = static_cast<uint64_t>(kSamplePeriod);
    for (int i = 0; i < 20; ++i) round();
    EXPECT_EQ(addresses.size(), without);
  }).join();
  EXPECT_EQ(LiveSamples(), 0u);
}

TEST(LiveSamplesTest, ThreadsFreeSamplesOfOneSpan) {
  for (int round = 0; round < 100; ++round) {
    std::vector<void*> blocks[2];
    for (int i = 0; i < 64; ++i) blocks[i % 2].push_back(Allocate(8192));
    std::thread other([&] { FreeAll(blocks[0]); });
    FreeAll(blocks[1]);
    other.join();
    ASSERT_EQ(LiveSamples(), 0u);
  }
}

// So no other thread ever waits for a profile, however many samples there are.
TEST(LiveSamplesTest, ProfilesOfThePresentAreWrittenWithoutALock) {
  if constexpr (!kDebugChecks) GTEST_SKIP() << "locks are counted only in builds with checks";
  std::vector<void*> blocks;
  for (int i = 0; i < 20'000; ++i) blocks.push_back(Allocate(2000));
  ASSERT_GT(LiveSamples(), 1000u);
  const std::string folder = ::testing::TempDir();
  EXPECT_GT(CurrentLockCounts().acquisitions, 0u);
  const auto locks_of_writing = [&] {
    const uint64_t before = CurrentLockCounts().acquisitions;
    EXPECT_TRUE(WriteHeapProfileFile((folder + "/locks.pb.gz").c_str()));
    EXPECT_TRUE(WriteHeapProfileFile((folder + "/locks.heap").c_str()));
    EXPECT_TRUE(WriteGrowthProfileFile((folder + "/locks.growth.pb.gz").c_str()));
    return CurrentLockCounts().acquisitions - before;
  };
  // The thread does what the heap has to do from time to time when it leaves the slow path.
  uint64_t locks = locks_of_writing();
  for (int i = 0; i < 10 && locks != 0; ++i) locks = locks_of_writing();
  EXPECT_EQ(locks, 0u);
  FreeAll(blocks);
}

}  // namespace
}  // namespace tcmalloc
