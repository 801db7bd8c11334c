// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs once with libc's registration and once without it (GLIBC_TUNABLES).

#include "system/rseq.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/rseq.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "fakes/fake_file.h"
#include "fakes/fault_injection.h"
#include "system/rseq_self_test.h"
#include "system/topology.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::FakeFile;
using ::tcmalloc::testing::FaultMode;
using ::tcmalloc::testing::InjectFaults;
using ::tcmalloc::testing::ScopedFaultInjection;
using ::tcmalloc::testing::SystemCall;

constexpr int kUnregister = 1;

bool LibcIsToldNotToRegister() {
  const char* tunables = std::getenv("GLIBC_TUNABLES");
  return tunables != nullptr && std::strstr(tunables, "glibc.pthread.rseq=0") != nullptr;
}

std::vector<int> AllowedCpus() {
  cpu_set_t mask;
  std::vector<int> cpus;
  if (::sched_getaffinity(0, sizeof(mask), &mask) != 0) return cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
  }
  return cpus;
}

bool RunOnlyOn(const std::vector<int>& cpus) {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  for (const int cpu : cpus) CPU_SET(cpu, &mask);
  return ::sched_setaffinity(0, sizeof(mask), &mask) == 0;
}

uint32_t Read(const uint32_t& field) { return __atomic_load_n(&field, __ATOMIC_RELAXED); }

// True if the kernel keeps the running thread's area up to date.
bool AreaFollowsTheThread() {
  const RseqArea* area = CurrentRseqArea();
  if (area == nullptr) return false;
  const std::vector<int> cpus = AllowedCpus();
  bool follows = true;
  for (const int cpu : cpus) {
    follows &= RunOnlyOn({cpu}) && Read(area->cpu_id) == static_cast<uint32_t>(cpu);
  }
  return RunOnlyOn(cpus) && follows;
}

// Runs in a forked child; true where `body` returned true there.
template <typename F>
bool TrueInChild(F body) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(body() ? 0 : 1);
  int status = -1;
  return ::waitpid(child, &status, 0) == child && status == 0;
}

template <typename F>
bool TrueInThread(F body) {
  bool result = false;
  std::thread([&] { result = body(); }).join();
  return result;
}

// From now on the kernel refuses the call to this process.
bool RefuseBySeccomp(uint32_t call, uint32_t error) {
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {.len = std::size(filter), .filter = filter};
  return ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         ::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program, 0, 0) == 0;
}

bool NoChildIsLeft() { return ::waitpid(-1, nullptr, __WALL | WNOHANG) == -1 && errno == ECHILD; }

class RseqTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (::syscall(SYS_rseq, nullptr, 0, 0, 0) != 0 && errno != EINVAL) {
      GTEST_SKIP() << "this kernel refuses restartable sequences";
    }
  }
  void TearDown() override {
    system_calls = saved_;
    EXPECT_TRUE(NoChildIsLeft());
  }

 private:
  SystemCalls saved_ = system_calls;
};

TEST_F(RseqTest, IsUsable) {
  errno = 1234;
  const RseqSupport support = DetectRseq();
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(support.state, RseqState::kUsable) << RseqStateName(support.state);
  EXPECT_EQ(support.own_registration, __rseq_size == 0);
  EXPECT_TRUE(!LibcIsToldNotToRegister() || support.own_registration);
  EXPECT_GE(support.id_count, AllowedCpus().back() + 1);
  EXPECT_GE(support.id_count, PossibleCpus());
}

TEST_F(RseqTest, TakesConcurrencyIdsWhereTheKernelHasThem) {
  const bool has_mm_cid = ::getauxval(27) >= 28;
  EXPECT_EQ(DetectRseq().ids, has_mm_cid ? CpuIds::kMmCid : CpuIds::kCpuId);
  EXPECT_EQ(DetectRseq().has_mm_cid, has_mm_cid);
  system_calls.getauxval = [](unsigned long type) -> unsigned long {
    return type == 27 ? 20 : ::getauxval(type);
  };
  EXPECT_EQ(DetectRseq().ids, CpuIds::kCpuId);
  EXPECT_FALSE(DetectRseq().has_mm_cid);
  EXPECT_EQ(DetectRseq().state, RseqState::kUsable);
}

TEST_F(RseqTest, TakesCpuNumbersWhereTheyArePreferred) {
  const RseqSupport support = DetectRseq(CpuIds::kCpuId);
  EXPECT_EQ(support.ids, CpuIds::kCpuId);
  EXPECT_EQ(support.has_mm_cid, DetectRseq().has_mm_cid);
  EXPECT_EQ(support.state, RseqState::kUsable);
}

TEST_F(RseqTest, CountsIdsByTheKernelsMasksWhereTheListIsTooShort) {
  FakeFile file("0\n");
  system_calls.sched_getaffinity = [](pid_t, size_t bytes, void* mask) {
    std::memset(mask, 0, bytes);
    return bytes < 16 ? -1 : 16;
  };
  EXPECT_EQ(DetectRseq().id_count, 128);
}

TEST_F(RseqTest, CountsIdsByWhatTheKernelPrints) {
  FakeFile file("Name:\tprogram\nCpus_allowed:\t3\nCpus_allowed_list:\t0-1\n");
  EXPECT_EQ(DetectRseq().id_count, std::max(4, PossibleCpus()));
}

TEST_F(RseqTest, AreaFollowsTheThread) {
  errno = 1234;
  ASSERT_NE(CurrentRseqArea(), nullptr);
  EXPECT_EQ(errno, 1234);
  EXPECT_EQ(CurrentRseqArea(), CurrentRseqArea());
  EXPECT_TRUE(AreaFollowsTheThread());
}

TEST_F(RseqTest, TheCpuOfAThreadIsKnownWithoutACall) {
  ASSERT_NE(CurrentRseqArea(), nullptr);
  const std::vector<int> cpus = AllowedCpus();
  for (const int cpu : cpus) {
    ASSERT_TRUE(RunOnlyOn({cpu}));
    EXPECT_EQ(CurrentCpuOrZero(), static_cast<uint32_t>(cpu));
  }
  EXPECT_TRUE(RunOnlyOn(cpus));
  if (!LibcIsToldNotToRegister()) return;
  EXPECT_TRUE(TrueInThread([] { return CurrentCpuOrZero() == 0; })) << "it has no area";
}

// Looks for the traces of a stray store of ours.
TEST_F(RseqTest, LeavesTheKernelsFieldsAlone) {
  const std::vector<int> cpus = AllowedCpus();
  ASSERT_TRUE(RunOnlyOn({cpus.back()}));
  const RseqArea* area = CurrentRseqArea();
  ASSERT_NE(area, nullptr);
  const uint32_t node = Read(area->node_id);
  const RseqSupport support = DetectRseq();
  EXPECT_TRUE(FenceRseq(-1));
  ASSERT_EQ(CurrentRseqArea(), area);
  EXPECT_EQ(Read(area->cpu_id_start), static_cast<uint32_t>(cpus.back()));
  EXPECT_EQ(Read(area->cpu_id), static_cast<uint32_t>(cpus.back()));
  EXPECT_EQ(Read(area->node_id), node);
  EXPECT_LT(Read(area->mm_cid), static_cast<uint32_t>(support.id_count));
  EXPECT_EQ(Read(area->flags), 0u);
  EXPECT_TRUE(RunOnlyOn(cpus));
}

TEST_F(RseqTest, ThreadsHaveAreasOfTheirOwn) {
  constexpr int kThreads = 32;
  for (int round = 0; round < 20; ++round) {
    std::barrier together(kThreads);
    std::vector<RseqArea*> areas(kThreads);
    std::vector<char> follow(kThreads);
    std::vector<std::thread> threads;
    for (size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        together.arrive_and_wait();
        areas[i] = CurrentRseqArea();
        follow[i] = AreaFollowsTheThread();
        together.arrive_and_wait();
      });
    }
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set<RseqArea*>(areas.begin(), areas.end()).size(), size_t{kThreads});
    EXPECT_EQ(std::count(areas.begin(), areas.end(), nullptr), 0);
    EXPECT_EQ(std::count(follow.begin(), follow.end(), 1), kThreads);
  }
}

// The ids of threads that run together differ, and threads that come and go need no new ones.
TEST_F(RseqTest, ConcurrencyIdsAreFew) {
  if (DetectRseq().ids != CpuIds::kMmCid) GTEST_SKIP() << "the kernel has none";
  std::atomic<uint32_t> highest{0};
  for (int round = 0; round < 50; ++round) {
    EXPECT_TRUE(TrueInThread([&] {
      const RseqArea* area = CurrentRseqArea();
      if (area != nullptr) highest = std::max(highest.load(), Read(area->mm_cid));
      return area != nullptr;
    }));
  }
  EXPECT_LT(highest, AllowedCpus().size());
}

TEST_F(RseqTest, ForkedChildrenKeepTheRegistration) {
  ASSERT_EQ(DetectRseq().state, RseqState::kUsable);
  const RseqArea* area = CurrentRseqArea();
  EXPECT_TRUE(TrueInChild([&] {
    return CurrentRseqArea() == area && AreaFollowsTheThread() && FenceRseq(-1) &&
           DetectRseq().state == RseqState::kUsable;
  }));
}

TEST_F(RseqTest, ChildrenWithTheParentsMemoryAreNotRegistered) {
  ASSERT_NE(CurrentRseqArea(), nullptr);
  alignas(16) static char stack[64 << 10];
  static RseqArea area;
  static int result;
  result = -1;
  const pid_t child = system_calls.clone(
      CLONE_VM | CLONE_VFORK, std::end(stack),
      [](void*) { result = real_system_calls.rseq(&area, sizeof(area), 0, kRseqSignature); },
      nullptr);
  ASSERT_GT(child, 0);
  EXPECT_EQ(system_calls.wait4(child, nullptr, __WALL), child);
  EXPECT_EQ(result, 0);
  EXPECT_NE(real_system_calls.rseq(&area, sizeof(area), 0, kRseqSignature), 0);
}

TEST_F(RseqTest, DetectionWorksInAnyThreadAndInSeveral) {
  // libc's, which tell the thread sanitizer when memory changes hands.
  system_calls.mmap = ::mmap;
  system_calls.munmap = ::munmap;
  std::vector<std::thread> threads;
  std::atomic<int> usable{0};
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] { usable += DetectRseq().state == RseqState::kUsable; });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(usable, 8);
}

std::atomic<int> signals{0};
void CountSignal(int) { ++signals; }

TEST_F(RseqTest, LeavesHandlersAndMasksAlone) {
  struct sigaction action = {};
  action.sa_handler = CountSignal;
  for (const int signal : {SIGILL, SIGSEGV, SIGCHLD}) {
    ASSERT_EQ(::sigaction(signal, &action, nullptr), 0);
  }
  sigset_t blocked;
  sigset_t original;
  sigset_t after;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGILL);
  sigaddset(&blocked, SIGUSR1);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &blocked, &original), 0);
  EXPECT_EQ(DetectRseq().state, RseqState::kUsable);
  ASSERT_EQ(::pthread_sigmask(SIG_SETMASK, &original, &after), 0);
  for (int signal = 1; signal < 32; ++signal) {
    EXPECT_EQ(sigismember(&blocked, signal), sigismember(&after, signal)) << signal;
  }
  for (const int signal : {SIGILL, SIGSEGV, SIGCHLD}) {
    struct sigaction current = {};
    ASSERT_EQ(::sigaction(signal, nullptr, &current), 0);
    EXPECT_EQ(current.sa_handler, CountSignal);
    ::signal(signal, SIG_DFL);
  }
  EXPECT_EQ(signals, 0);
}

TEST_F(RseqTest, WorksWhereTheProgramIgnoresChildrenAndFaults) {
  EXPECT_TRUE(TrueInChild([] {
    ::signal(SIGCHLD, SIG_IGN);
    ::signal(SIGILL, SIG_IGN);
    return DetectRseq().state == RseqState::kUsable;
  }));
}

int PretendToRegister(void*, uint32_t, int, uint32_t) { return 0; }

TEST_F(RseqTest, ATestFailsOnAKernelThatPretends) {
  system_calls.rseq = PretendToRegister;
  EXPECT_EQ(TestRseq().outcome, RseqTestOutcome::kFailed);
  EXPECT_EQ(DetectRseq().state, RseqState::kSelfTestFailed);
}

// It registers, keeps the ids up to date, and aborts nothing.
TEST_F(RseqTest, ATestFailsOnAKernelThatDoesNotAbort) {
  system_calls.rseq = [](void* area, uint32_t bytes, int flags, uint32_t signature) {
    if (area == nullptr) return real_system_calls.rseq(area, bytes, flags, signature);
    static_cast<RseqArea*>(area)->cpu_id = 0;
    static_cast<RseqArea*>(area)->mm_cid = 0;
    return 0;
  };
  EXPECT_EQ(TestRseq().outcome, RseqTestOutcome::kFailed);
}

// The kernel answers a section without the promised signature by SIGSEGV.
TEST_F(RseqTest, ATestFailsWhereTheKernelFindsTheSectionWrong) {
  system_calls.rseq = [](void* area, uint32_t bytes, int flags, uint32_t) {
    return real_system_calls.rseq(area, bytes, flags, 0x12345678);
  };
  EXPECT_TRUE(TrueInChild([] { return TestRseq().outcome == RseqTestOutcome::kFailed; }));
}

TEST_F(RseqTest, ReportsWhoRefuses) {
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kRseq, {.mode = FaultMode::kFrom, .error = ENOSYS});
  EXPECT_EQ(DetectRseq().state, RseqState::kNoKernelSupport);
  for (const int error : {EPERM, EINVAL, EACCES}) {
    InjectFaults(SystemCall::kRseq, {.mode = FaultMode::kFrom, .error = error});
    EXPECT_EQ(DetectRseq().state, RseqState::kForbidden);
  }
  // The call after the first one is the child's.
  InjectFaults(SystemCall::kRseq, {.mode = FaultMode::kOnce, .k = 2, .error = ENOSYS});
  EXPECT_EQ(DetectRseq().state, RseqState::kNoKernelSupport);
}

TEST_F(RseqTest, MakesNoChildWhereNothingIsToBeTested) {
  ScopedFaultInjection injection;
  for (const int error : {ENOSYS, EPERM}) {
    InjectFaults(SystemCall::kRseq, {.mode = FaultMode::kFrom, .error = error});
    EXPECT_EQ(TestRseq().outcome, RseqTestOutcome::kRefused);
  }
  EXPECT_EQ(CallsSeen(SystemCall::kClone), 0u);
}

TEST_F(RseqTest, NeedsFences) {
  ScopedFaultInjection injection;
  for (const int error : {ENOSYS, EPERM, EINVAL}) {
    InjectFaults(SystemCall::kMembarrier, {.mode = FaultMode::kFrom, .error = error});
    errno = 1234;
    EXPECT_EQ(DetectRseq().state, RseqState::kNoMembarrier);
    EXPECT_FALSE(FenceRseq(-1));
    EXPECT_EQ(errno, 1234);
  }
}

TEST_F(RseqTest, FencesReachAllCpusOrOne) {
  ASSERT_EQ(DetectRseq().state, RseqState::kUsable);
  EXPECT_TRUE(FenceRseq(-1));
  for (const int cpu : AllowedCpus()) EXPECT_TRUE(FenceRseq(cpu));
}

TEST_F(RseqTest, ATestThatCannotRunHasFailed) {
  ScopedFaultInjection injection;
  for (const SystemCall call : {SystemCall::kMmap, SystemCall::kClone, SystemCall::kRtSigaction}) {
    for (const uint64_t k : {1, 2}) {
      InjectFaults(call, {.mode = FaultMode::kOnce, .k = k, .error = EAGAIN});
      const bool hit = call == SystemCall::kRtSigaction || k == 1;
      EXPECT_EQ(DetectRseq().state, hit ? RseqState::kSelfTestFailed : RseqState::kUsable);
      InjectFaults(call, {});
    }
  }
  // The third call restores the mask.
  for (const uint64_t k : {1, 2}) {
    InjectFaults(SystemCall::kRtSigprocmask, {.mode = FaultMode::kOnce, .k = k, .error = EPERM});
    EXPECT_EQ(DetectRseq().state, RseqState::kSelfTestFailed);
  }
}

TEST_F(RseqTest, LeavesNoMappingBehind) {
  static int mappings;
  mappings = 0;
  system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) {
    ++mappings;
    return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
  };
  system_calls.munmap = [](void* start, size_t bytes) {
    --mappings;
    return real_system_calls.munmap(start, bytes);
  };
  EXPECT_EQ(TestRseq().outcome, RseqTestOutcome::kPassed);
  EXPECT_EQ(mappings, 0);
}

// CPU 1 in a system that claims to have one CPU.
TEST_F(RseqTest, IdsBeyondTheCpusAreBad) {
  const std::vector<int> cpus = AllowedCpus();
  if (cpus.back() == 0) GTEST_SKIP() << "needs a second CPU";
  ASSERT_TRUE(RunOnlyOn({cpus.back()}));
  {
    FakeFile file("0\n");
    system_calls.sched_getaffinity = [](pid_t, size_t, void*) { return -1; };
    const RseqSupport support = DetectRseq();
    EXPECT_EQ(support.id_count, 1);
    EXPECT_EQ(support.state, RseqState::kBadIds);
  }
  EXPECT_TRUE(RunOnlyOn(cpus));
}

TEST_F(RseqTest, SeccompRefusesRegistration) {
  EXPECT_TRUE(TrueInChild([] {
    return RefuseBySeccomp(SYS_rseq, EPERM) && DetectRseq().state == RseqState::kForbidden;
  }));
  EXPECT_TRUE(TrueInChild([] {
    return RefuseBySeccomp(SYS_rseq, ENOSYS) && DetectRseq().state == RseqState::kNoKernelSupport;
  }));
}

TEST_F(RseqTest, SeccompRefusesFences) {
  for (const uint32_t error : {EPERM, ENOSYS}) {
    EXPECT_TRUE(TrueInChild([&] {
      return RefuseBySeccomp(SYS_membarrier, error) &&
             DetectRseq().state == RseqState::kNoMembarrier && !FenceRseq(0);
    }));
  }
}

TEST_F(RseqTest, SeccompRefusesChildren) {
  EXPECT_TRUE(TrueInChild([] {
    return RefuseBySeccomp(SYS_clone, EPERM) && DetectRseq().state == RseqState::kSelfTestFailed;
  }));
}

// Where libc registers, its thread has an area before anyone asks.
class OwnRegistrationTest : public RseqTest {
 protected:
  void SetUp() override {
    RseqTest::SetUp();
    if (!DetectRseq().own_registration) GTEST_SKIP() << "libc registers";
  }
};

TEST_F(OwnRegistrationTest, ARefusedThreadIsNotAskedAgain) {
  static int asked;
  asked = 0;
  system_calls.rseq = [](void*, uint32_t, int, uint32_t) {
    ++asked;
    errno = EPERM;
    return -1;
  };
  EXPECT_TRUE(TrueInThread([] {
    errno = 1234;
    return CurrentRseqArea() == nullptr && CurrentRseqArea() == nullptr && errno == 1234;
  }));
  EXPECT_EQ(asked, 1);
}

// With its own registration glibc ends the process instead.
TEST_F(OwnRegistrationTest, SeccompRefusesThreadsThatStartLater) {
  EXPECT_TRUE(TrueInChild([] {
    const RseqArea* area = CurrentRseqArea();
    return area != nullptr && RefuseBySeccomp(SYS_rseq, EPERM) &&
           TrueInThread([] { return CurrentRseqArea() == nullptr; }) && CurrentRseqArea() == area;
  }));
}

TEST_F(OwnRegistrationTest, AThreadThatALibraryRegisteredIsForbidden) {
  EXPECT_TRUE(TrueInThread([] {
    RseqArea theirs;
    if (real_system_calls.rseq(&theirs, sizeof(theirs), 0, kRseqSignature) != 0) return false;
    const bool forbidden =
        CurrentRseqArea() == nullptr && DetectRseq().state == RseqState::kForbidden;
    return real_system_calls.rseq(&theirs, sizeof(theirs), kUnregister, kRseqSignature) == 0 &&
           forbidden;
  }));
}

// As a signal handler finds it that interrupts between the system call and the note of it.
TEST_F(OwnRegistrationTest, AnAreaThatIsRegisteredAlreadyIsRegistered) {
  system_calls.rseq = [](void* area, uint32_t bytes, int flags, uint32_t signature) {
    if (real_system_calls.rseq(area, bytes, flags, signature) != 0) return -1;
    return real_system_calls.rseq(area, bytes, flags, signature);
  };
  EXPECT_TRUE(TrueInThread([] { return AreaFollowsTheThread(); }));
}

TEST(RseqStateTest, EachHasItsPhrase) {
  std::set<std::string> names;
  for (int state = 0; state <= static_cast<int>(RseqState::kBadIds); ++state) {
    names.insert(RseqStateName(static_cast<RseqState>(state)));
  }
  EXPECT_EQ(names.size(), 6u);
  EXPECT_EQ(names.count("unknown"), 0u);
}

}  // namespace
}  // namespace tcmalloc
