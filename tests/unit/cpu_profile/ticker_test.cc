// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/ticker.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace tcmalloc {
namespace {

std::atomic<uint64_t> weight{0};
std::atomic<void*> argument_seen{nullptr};

void Count(const Tick& tick, void* argument) {
  weight += tick.weight;
  argument_seen = argument;
}

int64_t CpuNs(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

void Burn(int64_t ns) {
  const int64_t end = CpuNs(CLOCK_THREAD_CPUTIME_ID) + ns;
  while (CpuNs(CLOCK_THREAD_CPUTIME_ID) < end) {
  }
}

constexpr int64_t kMs = 1'000'000;

// Returns the number of timers that the kernel has for this process; 0 if it does not list them.
int KernelTimers() {
  std::ifstream file("/proc/self/timers");
  int timers = 0;
  for (std::string line; std::getline(file, line);) timers += line.starts_with("ID:");
  return timers;
}

// A function of a tick that takes longer than the kernel needs for the next one.
class SlowFunction {
 public:
  static void OnTick(const Tick&, void*) {
    deepest_ = std::max(deepest_, ++depth_);
    if (calls_++ < 3) Burn(50 * kMs);
    --depth_;
  }
  static int deepest() { return deepest_; }
  static int calls() { return calls_; }

 private:
  static inline int depth_ = 0;
  static inline int deepest_ = 0;
  static inline int calls_ = 0;
};

TEST(TickerTest, TicksDoNotInterruptOneAnother) {
  ProfilerSettings settings;
  settings.frequency = kMostFrequency;
  const int place = ticker.Subscribe(SlowFunction::OnTick, nullptr, settings);
  ASSERT_GE(place, 0);
  while (SlowFunction::calls() < 4) Burn(kMs);
  ticker.Unsubscribe(place);
  EXPECT_EQ(SlowFunction::deepest(), 1);
}

class FrequencyTest : public ::testing::TestWithParam<int> {};

// The CPU time that each thread of a test had used up at its last tick.
class TickedTime {
 public:
  // Gives the running thread a place, and its time from now on.
  static void BeginThread(size_t place) {
    place_ = place;
    begin_ns_ = CpuNs(CLOCK_THREAD_CPUTIME_ID);
    ns_[place] = 0;
  }
  static void OnTick(const Tick& tick, void* argument) {
    ns_[place_] = CpuNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns_;
    Count(tick, argument);
  }
  static double Seconds() {
    int64_t sum = 0;
    for (const std::atomic<int64_t>& ns : ns_) sum += ns;
    return static_cast<double>(sum) / 1e9;
  }

 private:
  static inline thread_local size_t place_ = 0;
  static inline thread_local int64_t begin_ns_ = 0;
  static inline std::array<std::atomic<int64_t>, 4> ns_ = {};
};

// The weights of the ticks of four threads, in seconds, and the CPU time of these.
struct TimeOfTicks {
  double weights = 0;
  double until_last_ticks = 0;
  double spent = 0;

  bool fits() const { return weights > 0.8 * until_last_ticks && weights < 1.2 * spent; }
};

// Takes ticks of the running thread and of three that begin later and end early.
TimeOfTicks TakeTicks(int frequency) {
  ProfilerSettings settings;
  settings.frequency = frequency;
  weight = 0;
  int argument = 0;
  const int64_t begin = CpuNs(CLOCK_PROCESS_CPUTIME_ID);
  TickedTime::BeginThread(0);
  const int place = ticker.Subscribe(TickedTime::OnTick, &argument, settings);
  EXPECT_GE(place, 0);
  Burn(400 * kMs);
  std::vector<std::thread> threads;
  for (size_t i = 1; i <= 3; ++i) {
    threads.emplace_back([i] {
      TickedTime::BeginThread(i);
      Burn(200 * kMs);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(ticker.Unsubscribe(place));
  EXPECT_EQ(argument_seen, &argument);
  return {.weights = static_cast<double>(weight) / frequency,
          .until_last_ticks = TickedTime::Seconds(),
          .spent = static_cast<double>(CpuNs(CLOCK_PROCESS_CPUTIME_ID) - begin) / 1e9};
}

// The kernel rounds, but loses no period: the sum of weights is the CPU time in periods, up to the
// last moment at which the kernel looked at the timers. On a busy machine it may not look for long,
// and find a thread that begins when that has nearly ended: then another time tells.
TEST_P(FrequencyTest, TicksOncePerPeriod) {
  TimeOfTicks time;
  for (int tries = 0; tries < 3 && !time.fits(); ++tries) time = TakeTicks(GetParam());
  EXPECT_GT(time.weights, 0.8 * time.until_last_ticks);
  EXPECT_LT(time.weights, 1.2 * time.spent);
  EXPECT_GT(time.until_last_ticks, 0);
  EXPECT_EQ(ticker.timers(), 0U);
}
INSTANTIATE_TEST_SUITE_P(Frequencies, FrequencyTest, ::testing::Values(100, 1000, 4000));

TEST(TickerTest, IsSilentAfterwards) {
  const int place = ticker.Subscribe(Count, nullptr, {});
  ASSERT_GE(place, 0);
  ASSERT_TRUE(ticker.Unsubscribe(place));
  weight = 0;
  Burn(50 * kMs);
  EXPECT_EQ(weight, 0U);
}

TEST(TickerTest, StartsAndStopsWithoutALeak) {
  std::atomic<bool> stop{false};
  std::thread other([&stop] {
    while (!stop) sched_yield();
  });
  for (int i = 0; i < 10'000; ++i) {
    const int place = ticker.Subscribe(Count, nullptr, {});
    ASSERT_GE(place, 0) << i;
    ASSERT_GE(ticker.timers(), 2U);
    ASSERT_TRUE(ticker.Unsubscribe(place));
    ASSERT_EQ(ticker.timers(), 0U);
  }
  stop = true;
  other.join();
  EXPECT_EQ(KernelTimers(), 0);
}

TEST(TickerTest, ThreadsThatHaveEndedLeaveFewTimers) {
  ProfilerSettings settings;
  settings.frequency = 1000;
  const int place = ticker.Subscribe(Count, nullptr, settings);
  ASSERT_GE(place, 0);
  for (int i = 0; i < 500; ++i) std::thread([] { ticker.RegisterThread(); }).join();
  EXPECT_LE(ticker.timers(), 200U);
  EXPECT_TRUE(ticker.Unsubscribe(place));
  EXPECT_EQ(ticker.timers(), 0U);
}

TEST(TickerTest, FindsThreadsThatWereThereBefore) {
  std::atomic<bool> stop{false};
  std::atomic<bool> begun{false};
  std::thread other([&] {
    begun = true;
    while (!stop) {
    }
  });
  while (!begun) sched_yield();
  const int place = ticker.Subscribe(Count, nullptr, {});
  ASSERT_GE(place, 0);
  EXPECT_GE(ticker.timers(), 2U);
  stop = true;
  other.join();
  EXPECT_TRUE(ticker.Unsubscribe(place));
}

TEST(TickerTest, TakesWallClockTime) {
  ProfilerSettings settings;
  settings.wall = true;
  settings.frequency = 1000;
  weight = 0;
  const int place = ticker.Subscribe(Count, nullptr, settings);
  ASSERT_GE(place, 0);
  while (weight < 50) usleep(1000);
  EXPECT_TRUE(ticker.Unsubscribe(place));
}

// The threads that have timers as the profile starts hear nothing.
TEST(TickerTest, WallClockTimeFindsThreadsAfterDeafOnes) {
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  ProfilerSettings settings;
  settings.wall = true;
  weight = 0;
  const int place = ticker.Subscribe(Count, nullptr, settings);
  ASSERT_GE(place, 0);
  std::thread([&before] {
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    while (weight < 5) usleep(1000);
  }).join();
  EXPECT_TRUE(ticker.Unsubscribe(place));
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Lets the next thread have the number of an earlier one. Returns false if that is forbidden.
bool WantNumber(pid_t thread) {
  std::ofstream file("/proc/sys/kernel/ns_last_pid");
  file << thread - 1 << std::flush;
  return file.good();
}

// The ticks of the running thread.
thread_local std::atomic<int> own_ticks{0};

void CountOwn(const Tick& tick, void*) {
  weight += tick.weight;
  ++own_ticks;
}

// Returns false if the running thread has no tick in thousands of the periods.
bool IsTicked() {
  for (int i = 0; i < 3000 && own_ticks == 0; ++i) Burn(kMs);
  return own_ticks != 0;
}

class ReturningNumberTest : public ::testing::TestWithParam<TickSource> {};

TEST_P(ReturningNumberTest, ANewThreadHasATimerToo) {
  constexpr int kMostAttempts = 1000;
  ProfilerSettings settings;
  settings.wall = GetParam() == TickSource::kWallTime;
  settings.perf = GetParam() == TickSource::kEvents;
  settings.frequency = 1000;
  const int place = ticker.Subscribe(CountOwn, nullptr, settings);
  ASSERT_GE(place, 0);
  pid_t first = 0;
  bool begun = false;
  std::thread([&] {
    first = OwnThread();
    // So long that the kernel's ticks tell the beginnings of both apart.
    begun = IsTicked();
    while (begun && own_ticks < 50) Burn(kMs);
  }).join();
  EXPECT_TRUE(begun);
  bool same = false;
  bool ticked = false;
  for (int i = 0; i < kMostAttempts && !same && WantNumber(first); ++i) {
    std::thread([&] {
      same = OwnThread() == first;
      ticked = same && IsTicked();
    }).join();
  }
  EXPECT_TRUE(ticker.Unsubscribe(place));
  if (!same) GTEST_SKIP() << "the number of a thread cannot be had again here";
  EXPECT_TRUE(ticked);
}

INSTANTIATE_TEST_SUITE_P(Sources, ReturningNumberTest,
                         ::testing::Values(TickSource::kCpuTime, TickSource::kWallTime,
                                           TickSource::kEvents));

TEST(TickerTest, PerfEventsOrTimers) {
  ProfilerSettings settings;
  settings.perf = true;
  settings.frequency = 1000;
  weight = 0;
  ::testing::internal::CaptureStderr();
  const int place = ticker.Subscribe(Count, nullptr, settings);
  const std::string said = ::testing::internal::GetCapturedStderr();
  ASSERT_GE(place, 0) << said;
  while (weight < 50) Burn(kMs);
  EXPECT_TRUE(ticker.Unsubscribe(place));
  EXPECT_EQ(ticker.timers(), 0U);
}

// Daemons close all files. What they open afterwards has the numbers of the events.
TEST(TickerTest, FilesWithTheNumbersOfEventsStayOpen) {
  ProfilerSettings settings;
  settings.perf = true;
  const int next = dup(STDERR_FILENO);
  close(next);
  const int place = ticker.Subscribe(Count, nullptr, settings);
  ASSERT_GE(place, 0);
  for (size_t i = 0; i < ticker.timers(); ++i) close(next + static_cast<int>(i));
  const int file = dup(STDERR_FILENO);
  EXPECT_TRUE(ticker.Unsubscribe(place));
  EXPECT_EQ(fcntl(file, F_GETFD), 0);
  close(file);
}

TEST(TickerTest, AChildOfForkStartsAnew) {
  const int place = ticker.Subscribe(Count, nullptr, {});
  ASSERT_GE(place, 0);
  const pid_t child = fork();
  if (child == 0) {
    ticker.Forget();
    if (!ticker.Unsubscribe(place) || ticker.subscribers() != 0) _exit(3);
    weight = 0;
    const int again = ticker.Subscribe(Count, nullptr, {});
    if (again < 0) _exit(1);
    while (weight < 5) Burn(kMs);
    _exit(ticker.Unsubscribe(again) && ticker.timers() == 0 ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(ticker.Unsubscribe(place));
}

}  // namespace
}  // namespace tcmalloc
