// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The small headers: clock, random numbers, auxiliary vector, threads, table of calls.

#include <gtest/gtest.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>
#include <set>
#include <thread>

#include "system/auxv.h"
#include "system/clock.h"
#include "system/random.h"
#include "system/resident.h"
#include "system/system_calls.h"
#include "system/thread_exists.h"

namespace tcmalloc {
namespace {

class ProcessTest : public ::testing::Test {
 protected:
  ~ProcessTest() override { system_calls = saved_; }

 private:
  SystemCalls saved_ = system_calls;
};

TEST_F(ProcessTest, ClockGoesForward) {
  const int64_t first = MonotonicNanoseconds();
  EXPECT_GT(first, 0);
  EXPECT_GE(MonotonicNanoseconds(), first);
  system_calls.clock_gettime = [](clockid_t clock, timespec* time) {
    EXPECT_EQ(clock, CLOCK_MONOTONIC);
    *time = {.tv_sec = 5'000'000'000, .tv_nsec = 7};
    return 0;
  };
  EXPECT_EQ(MonotonicNanoseconds(), 5'000'000'000'000'000'007);
  system_calls.clock_gettime = [](clockid_t, timespec*) { return -1; };
  EXPECT_EQ(MonotonicNanoseconds(), 0);
}

TEST_F(ProcessTest, PageSizeIsTheKernels) {
  EXPECT_EQ(KernelPageSize(), static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  system_calls.getauxval = [](unsigned long) -> unsigned long { return 0; };
  EXPECT_EQ(KernelPageSize(), 4096u);
  EXPECT_FALSE(IsSecureProcess());
}

TEST_F(ProcessTest, ResidentBytesFollowWhatIsTouched) {
  constexpr size_t kBytes = size_t{64} << 20;
  const uint64_t before = ResidentBytes().value();
  void* memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  std::memset(memory, 1, kBytes);
  const uint64_t touched = ResidentBytes().value();
  ASSERT_EQ(::munmap(memory, kBytes), 0);
  // Sanitizers touch memory of their own beside it.
  EXPECT_GE(touched - before, kBytes - kBytes / 8);
  EXPECT_LE(touched - before, 8 * kBytes);
  EXPECT_LT(ResidentBytes().value(), touched - kBytes / 2);
}

TEST_F(ProcessTest, WhereResidentBytesCannotBeReadNothingIsSaid) {
  system_calls.open = [](const char*, int, mode_t) { return -1; };
  EXPECT_EQ(ResidentBytes(), std::nullopt);
}

TEST_F(ProcessTest, SeedsDifferBySaltAndStayTheSameInAProcess) {
  std::set<uint64_t> seeds;
  for (uint64_t salt = 0; salt < 1000; ++salt) seeds.insert(RandomSeed(salt));
  EXPECT_EQ(seeds.size(), 1000u);
  EXPECT_EQ(RandomSeed(1), RandomSeed(1));
}

TEST_F(ProcessTest, SeedsDifferByProcess) {
  static unsigned char bytes[16] = {1, 2, 3};
  system_calls.getauxval = [](unsigned long type) {
    return type == AT_RANDOM ? reinterpret_cast<unsigned long>(bytes) : 0;
  };
  std::set<uint64_t> seeds;
  for (unsigned char& byte : bytes) {
    seeds.insert(RandomSeed(1));
    ++byte;
  }
  EXPECT_EQ(seeds.size(), sizeof(bytes));
}

TEST_F(ProcessTest, SeedWithoutTheKernelsBytesComesFromTheClock) {
  static int64_t nanoseconds;
  system_calls.getauxval = [](unsigned long) -> unsigned long { return 0; };
  system_calls.clock_gettime = [](clockid_t, timespec* time) {
    *time = {.tv_sec = 0, .tv_nsec = ++nanoseconds};
    return 0;
  };
  std::set<uint64_t> seeds;
  for (int i = 0; i < 100; ++i) seeds.insert(RandomSeed(1));
  EXPECT_EQ(seeds.size(), 100u);
}

TEST_F(ProcessTest, ThreadsExistUntilTheyEnd) {
  EXPECT_TRUE(ThreadExists(::gettid()));
  pid_t ended = 0;
  std::thread([&] {
    ended = ::gettid();
    EXPECT_TRUE(ThreadExists(ended));
  }).join();
  // The kernel lets others join a thread before its number is free.
  while (::syscall(SYS_tgkill, ::getpid(), ended, 0) == 0) std::this_thread::yield();
  EXPECT_FALSE(ThreadExists(ended));
}

TEST_F(ProcessTest, ThreadsThatMayNotBeAskedForExist) {
  system_calls.tgkill = [](pid_t, pid_t, int) {
    errno = EPERM;
    return -1;
  };
  EXPECT_TRUE(ThreadExists(::gettid()));
}

TEST_F(ProcessTest, RealCallsFailAsLibcsDo) {
  errno = 0;
  EXPECT_EQ(real_system_calls.mmap(nullptr, 0, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
            MAP_FAILED);
  EXPECT_EQ(errno, EINVAL);
  errno = 0;
  EXPECT_EQ(real_system_calls.munmap(reinterpret_cast<void*>(1), 1), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(real_system_calls.close(-1), -1);
  EXPECT_EQ(errno, EBADF);
  EXPECT_EQ(real_system_calls.open("/does/not/exist", 0, 0), -1);
  EXPECT_EQ(errno, ENOENT);
}

TEST_F(ProcessTest, RealCallsDoWhatTheirNamesSay) {
  const size_t page = KernelPageSize();
  void* start = real_system_calls.mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE,
                                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(start, MAP_FAILED);
  auto* bytes = static_cast<char*>(start);
  bytes[0] = 1;
  EXPECT_EQ(real_system_calls.madvise(start, page, MADV_DONTNEED), 0);
  EXPECT_EQ(bytes[0], 0);
  EXPECT_EQ(real_system_calls.mprotect(start, 2 * page, PROT_READ), 0);
  start = real_system_calls.mremap(start, 2 * page, 64 * page, MREMAP_MAYMOVE, nullptr);
  ASSERT_NE(start, MAP_FAILED);
  EXPECT_EQ(real_system_calls.munmap(start, 64 * page), 0);
  rlimit limit = {};
  EXPECT_EQ(real_system_calls.getrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT_GT(limit.rlim_cur, 0u);
  EXPECT_EQ(real_system_calls.sbrk(0), ::sbrk(0));
}

}  // namespace
}  // namespace tcmalloc
