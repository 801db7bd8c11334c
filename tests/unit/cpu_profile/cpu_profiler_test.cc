// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/cpu_profiler.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "cpu_profile/timer_calls.h"
#include "system/system_calls.h"
#include "unit/profile_format/string_sink.h"

#ifndef __has_feature
#define __has_feature(feature) 0
#endif

namespace tcmalloc {
namespace {

namespace fs = std::filesystem;

class CpuProfilerTest : public ::testing::Test {
 protected:
  CpuProfilerTest() : directory_(::testing::TempDir() + "cpu_profiler.XXXXXX") {
    EXPECT_NE(mkdtemp(directory_.data()), nullptr);
  }
  ~CpuProfilerTest() override { fs::remove_all(directory_); }

  void SetUp() override {
    KernelTimer timer = 0;
    if (!CreateTimer({CLOCK_PROCESS_CPUTIME_ID, 0, SIGPROF, nullptr}, &timer)) {
      GTEST_SKIP() << "the kernel grants no timers: " << std::strerror(errno);
    }
    DeleteTimer(timer);
  }

  std::string Path(const char* name) const { return directory_ + "/" + name; }

  static std::string Contents(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  // Returns the sum of the counts of a whole profile in gperftools' format; -1 if it is none.
  static int64_t Samples(const std::string& path) {
    const std::string text = Contents(path);
    std::vector<uintptr_t> words(text.size() / sizeof(uintptr_t));
    std::memcpy(words.data(), text.data(), words.size() * sizeof(uintptr_t));
    if (words.size() < 8 || words[0] != 0 || words[1] != 3 || words[2] != 0 || words[4] != 0) {
      return -1;
    }
    int64_t sum = 0;
    for (size_t i = 5; i + 2 < words.size(); i += 2 + words[i + 1]) {
      if (words[i] == 0) return words[i + 1] == 1 && words[i + 2] == 0 ? sum : -1;
      sum += static_cast<int64_t>(words[i]);
    }
    return -1;
  }

  static int Gathered() {
    ProfilerState state;
    ProfilerGetCurrentState(&state);
    return state.samples_gathered;
  }

  // Burns CPU time until `done()`, and returns false if that takes thousands of the periods, so
  // that a test without samples says so rather than running into its time limit.
  template <typename Done>
  static bool BurnUntil(Done done) {
    constexpr clock_t kMostSeconds = 60;
    const clock_t end = clock() + kMostSeconds * CLOCKS_PER_SEC;
    while (!done()) {
      if (clock() >= end) return false;
      for (volatile int i = 0; i < 1'000'000;) i = i + 1;
    }
    return true;
  }

  static void BurnUntilSampled(int samples) {
    ASSERT_TRUE(BurnUntil([samples] { return Gathered() >= samples; }))
        << Gathered() << " of " << samples << " samples";
  }

  std::string directory_;
};

TEST_F(CpuProfilerTest, WritesWhenItIsFlushedAndStopped) {
  const std::string path = Path("a.prof");
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  EXPECT_EQ(ProfilerStart(path.c_str()), 0);
  EXPECT_NE(ProfilingIsEnabledForAllThreads(), 0);
  ProfilerState state;
  ProfilerGetCurrentState(&state);
  EXPECT_NE(state.enabled, 0);
  EXPECT_EQ(state.profile_name, path);
  EXPECT_LE(state.start_time, time(nullptr));
  EXPECT_FALSE(fs::exists(path));
  BurnUntilSampled(3);
  ProfilerFlush();
  const int64_t flushed = Samples(path);
  EXPECT_GE(flushed, 3);
  BurnUntilSampled(static_cast<int>(flushed) + 3);
  ProfilerStop();
  EXPECT_GE(Samples(path), flushed + 3);
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
  ProfilerGetCurrentState(&state);
  EXPECT_EQ(state.enabled, 0);
  EXPECT_STREQ(state.profile_name, "");
}

TEST_F(CpuProfilerTest, AFileIsWrittenWhereTheProfileBegan) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  EXPECT_EQ(ProfilerStart("a.prof"), 1);
  fs::current_path(before);
  ProfilerState state;
  ProfilerGetCurrentState(&state);
  EXPECT_STREQ(state.profile_name, "a.prof");
  ProfilerStop();
  EXPECT_GE(Samples(Path("a.prof")), 0);
  EXPECT_FALSE(fs::exists("a.prof"));
}

TEST_F(CpuProfilerTest, ADirectoryThatIsRemovedLeavesNoFile) {
  const fs::path before = fs::current_path();
  fs::create_directory(Path("gone"));
  fs::current_path(Path("gone"));
  EXPECT_EQ(ProfilerStart("a.prof"), 1);
  fs::remove_all(Path("gone"));
  fs::current_path(before);
  ProfilerStop();
  EXPECT_FALSE(fs::exists("a.prof"));
}

TEST_F(CpuProfilerTest, WritesProfileProto) {
  const std::string path = Path("a.pb.gz");
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  BurnUntilSampled(2);
  ProfilerStop();
  const std::string unpacked = testing::Unpack(Contents(path));
  EXPECT_NE(unpacked.find("nanoseconds"), std::string::npos);
}

TEST_F(CpuProfilerTest, RefusesFilesThatCannotBeWritten) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ProfilerStart("/nonexistent/folder/file"), 0);
  EXPECT_EQ(ProfilerStart(nullptr), 0);
  EXPECT_NE(::testing::internal::GetCapturedStderr().find("/nonexistent/folder/file"),
            std::string::npos);
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
}

TEST_F(CpuProfilerTest, FiltersThreads) {
  ProfilerOptions options = {};
  std::atomic<int> calls = 0;
  options.filter_in_thread = [](void* argument) {
    ++*static_cast<std::atomic<int>*>(argument);
    return 0;
  };
  options.filter_in_thread_arg = &calls;
  const std::string path = Path("none.prof");
  ASSERT_EQ(ProfilerStartWithOptions(path.c_str(), &options), 1);
  EXPECT_TRUE(BurnUntil([&calls] { return calls >= 3; })) << calls << " calls of the filter";
  ProfilerStop();
  EXPECT_EQ(Samples(path), 0);
}

TEST_F(CpuProfilerTest, TogglesWithNumberedFiles) {
  const std::string prefix = Path("t");
  cpu_profiler.Toggle(prefix.c_str());
  EXPECT_TRUE(cpu_profiler.running());
  cpu_profiler.Toggle(prefix.c_str());
  EXPECT_FALSE(cpu_profiler.running());
  cpu_profiler.Toggle(prefix.c_str());
  cpu_profiler.Toggle(prefix.c_str());
  // A slow machine may spend a whole period between two toggles.
  EXPECT_GE(Samples(Path("t.0")), 0);
  EXPECT_GE(Samples(Path("t.1")), 0);
}

// The test of the ticker does so ten thousand times. Here each one replaces a file, for which some
// file systems write to the disk.
TEST_F(CpuProfilerTest, StartsAndStopsManyTimes) {
  const std::string path = Path("a.prof");
  for (int i = 0; i < 100; ++i) {
    ASSERT_EQ(ProfilerStart(path.c_str()), 1);
    ProfilerStop();
  }
  EXPECT_EQ(ticker.timers(), 0U);
}

TEST_F(CpuProfilerTest, AChildIsNotProfiledUntilItAsks) {
  const std::string path = Path("parent.prof");
  const std::string of_child = Path("child.prof");
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  const pid_t child = fork();
  if (child == 0) {
    if (ProfilingIsEnabledForAllThreads() != 0) _exit(1);
    ProfilerStop();
    if (ProfilerStart(of_child.c_str()) != 1) _exit(2);
    BurnUntilSampled(2);
    ProfilerStop();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_GE(Samples(of_child), 2);
  ProfilerStop();
  EXPECT_GE(Samples(path), 0);
}

TEST_F(CpuProfilerTest, ChildrenAreFollowedIfThatIsAskedFor) {
  const std::string path = Path("parent.pb.gz");
  cpu_profiler.FollowForks(path.c_str());
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  const pid_t child = fork();
  if (child == 0) {
    BurnUntilSampled(2);
    // Of another generation.
    const pid_t second = fork();
    int status = -1;
    if (second == 0) BurnUntilSampled(2);
    // Without a sample, and so without a file.
    if (second == 0 && fork() == 0) {
      if (Gathered() == 0) cpu_profiler.StopBeforeEnd();
      _exit(0);
    }
    if (second != 0 && (waitpid(second, &status, 0) != second || status != 0)) _exit(1);
    cpu_profiler.StopBeforeEnd();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(Path(("parent_" + std::to_string(child) + ".pb.gz").c_str())));
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 2);
  cpu_profiler.FollowForks(nullptr);
  ProfilerStop();
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_), {}), 3);
}

TEST_F(CpuProfilerTest, FilesOfChildrenAreWrittenWhereTheirParentWas) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  cpu_profiler.FollowForks("a.prof");
  ASSERT_EQ(ProfilerStart("a.prof"), 1);
  fs::create_directory("elsewhere");
  fs::current_path("elsewhere");
  const pid_t child = fork();
  if (child == 0) {
    BurnUntilSampled(1);
    cpu_profiler.StopBeforeEnd();
    _exit(0);
  }
  fs::current_path(before);
  cpu_profiler.FollowForks(nullptr);
  ProfilerStop();
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_GE(Samples(Path(("a.prof_" + std::to_string(child)).c_str())), 1);
  EXPECT_TRUE(fs::is_empty(Path("elsewhere")));
}

TEST_F(CpuProfilerTest, SeveralThreadsStartAndStop) {
  std::atomic<int> started = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([this, i, &started] {
      const std::string path = Path(std::to_string(i).c_str());
      for (int round = 0; round < 30; ++round) {
        started += ProfilerStart(path.c_str());
        Gathered();
        if (round % 3 == 0) ProfilerFlush();
        ProfilerStop();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_GT(started, 0);
  EXPECT_EQ(ProfilingIsEnabledForAllThreads(), 0);
  EXPECT_EQ(ticker.timers(), 0U);
  for (const fs::directory_entry& file : fs::directory_iterator(directory_)) {
    EXPECT_GE(Samples(file.path()), 0) << file;
  }
}

// A child of which libc's handlers of fork know nothing has the profile of its parent, and must not
// write it.
TEST_F(CpuProfilerTest, AChildMadePastLibcWritesNothingOfItsParents) {
  const std::string path = Path("parent.prof");
  const std::string of_child = Path("child.prof");
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    ProfilerFlush();
    cpu_profiler.StopBeforeEnd();
    if (cpu_profiler.running()) _exit(1);
    ProfilerStop();
    if (ProfilerStart(of_child.c_str()) != 1) _exit(2);
    ProfilerStop();
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_FALSE(fs::exists(path));
  EXPECT_TRUE(fs::exists(of_child));
  cpu_profiler.StopBeforeEnd();
  EXPECT_FALSE(cpu_profiler.running());
  EXPECT_GE(Samples(path), 0);
}

// Such a thread has no samples. The others have theirs, and the profile ends as it should.
TEST_F(CpuProfilerTest, AThreadMayBlockTheSignal) {
  std::atomic<bool> stop = false;
  std::thread blocked([&stop] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, nullptr);
    while (!stop) {
    }
  });
  const std::string path = Path("a.prof");
  ASSERT_EQ(ProfilerStart(path.c_str()), 1);
  BurnUntilSampled(5);
  stop = true;
  blocked.join();
  ProfilerStop();
  EXPECT_GE(Samples(path), 5);
  EXPECT_EQ(ticker.timers(), 0U);
}

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
struct RawThread {
  std::atomic<pid_t> number = 0;  // set to 0 by the kernel when the thread has ended
  std::atomic<int> samples = 0;
};

void SetProfilerSignal(int how) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGPROF);
  sigprocmask(how, &signals, nullptr);
}

// Is started by the kernel's call alone, so that libc knows nothing of it. As libc does, the test
// keeps signals away from the call: qemu-user gives a thread the mask that its parent has at that
// moment in the emulator, which is a full one, for ever, if a signal of the parent is under way.
TEST_F(CpuProfilerTest, ThreadsThatLibcDoesNotKnowAreSampled) {
  static RawThread raw;
  ProfilerOptions options = {};
  options.filter_in_thread = [](void*) {
    if (system_calls.gettid() == raw.number) ++raw.samples;
    return 1;
  };
  ASSERT_EQ(ProfilerStartWithOptions(Path("a.prof").c_str(), &options), 1);
  alignas(16) static char stack[256 << 10];
  constexpr int kFlags = CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD |
                         CLONE_SYSVSEM | CLONE_PARENT_SETTID | CLONE_CHILD_CLEARTID;
  SetProfilerSignal(SIG_BLOCK);
  const int thread = clone(
      [](void*) {
        SetProfilerSignal(SIG_UNBLOCK);
        BurnUntil([] { return raw.samples >= 3; });
        return 0;
      },
      stack + sizeof(stack), kFlags, nullptr, &raw.number, nullptr, &raw.number);
  SetProfilerSignal(SIG_UNBLOCK);
  ASSERT_GT(thread, 0);
  while (raw.number != 0) usleep(1000);
  ProfilerStop();
  EXPECT_GE(raw.samples, 3);
  EXPECT_GE(Samples(Path("a.prof")), 3);
}
#endif

}  // namespace
}  // namespace tcmalloc
