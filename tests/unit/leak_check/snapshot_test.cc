// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/snapshot.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "leak_check/program_mappings.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr size_t kBlockWords = 16;
constexpr uintptr_t kMask = 0x5555'0000'aaaa'ffff;

// Blocks in a mapping of their own, whose addresses no other memory has.
class FakeBlocks final : public BlockSource {
 public:
  explicit FakeBlocks(size_t count) : count_(count) {
    hidden_ = reinterpret_cast<uintptr_t>(::mmap(nullptr, MappedBytes(), PROT_READ | PROT_WRITE,
                                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) ^
              kMask;
  }
  // Keeps the addresses: threads of later tests get the stacks of earlier ones, with what signal
  // frames left there, which must not lead to blocks of a later test.
  ~FakeBlocks() { ::mprotect(reinterpret_cast<void*>(hidden_ ^ kMask), MappedBytes(), PROT_NONE); }

  size_t CountAtMost() const override { return count_at_most_; }
  uint64_t Bytes() const override { return count_ * kBlockWords * sizeof(uintptr_t); }
  size_t Copy(Block* to, size_t most) const override {
    for (size_t i = 0; i < count_ && i < most; ++i) {
      to[i] = {.address = Hidden(i) ^ kMask,
               .bytes = kBlockWords * sizeof(uintptr_t),
               .sequence = i,
               .stack = static_cast<uint32_t>(i % 5 + 1)};
    }
    return count_;
  }
  std::span<const uintptr_t> Frames(uint32_t) const override { return {}; }

  // Claims to be so many that no search in place is made.
  void ClaimToBeMany() { count_at_most_ = size_t{1} << 17; }
  void ClaimToBeFew() { count_at_most_ = count_; }

  uintptr_t Hidden(size_t i) const {
    return ((hidden_ ^ kMask) + kGap + i * kBlockWords * sizeof(uintptr_t)) ^ kMask;
  }

 private:
  // The address of the mapping is left on the stack, and must not be that of a block. Nor may a
  // block begin with a page: new threads find addresses of pages in their registers or stacks.
  static constexpr size_t kGap = 4096 + 512;

  size_t MappedBytes() const { return kGap + count_ * kBlockWords * sizeof(uintptr_t); }

  size_t count_;
  size_t count_at_most_ = count_;
  uintptr_t hidden_;
};

class SnapshotTest : public ::testing::Test {
 protected:
  // Returns the numbers of the blocks that are lost. Does not leave addresses of blocks on the
  // stack.
  __attribute__((noinline)) std::set<size_t> Lost(SnapshotRequest request = {}) {
    request.blocks = &blocks_;
    if (request.own_stack == 0) {
      request.own_stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    }
    SnapshotResult* result = NewResult();
    MapsText maps;
    outcome_ = TakeSnapshot(request, &maps, result);
    std::set<size_t> lost;
    for (uint32_t i = 0; i < result->listed_count; ++i) {
      const uintptr_t first = blocks_.Hidden(0) ^ kMask;
      lost.insert((result->listed[i].address - first) / (kBlockWords * sizeof(uintptr_t)));
    }
    threads_ = result->threads;
    held_threads_ = result->held_threads;
    lost_blocks_ = result->lost_blocks;
    row_count_ = result->row_count;
    DeleteResult(result);
    return lost;
  }

  // Leaves the address of a block only where it is told to.
  __attribute__((noinline)) void Store(size_t i, volatile uintptr_t* word) {
    *word = blocks_.Hidden(i) ^ kMask;
  }

  static constexpr size_t kBlocks = 20;
  FakeBlocks blocks_{kBlocks};
  SnapshotOutcome outcome_ = SnapshotOutcome::kDone;
  uint32_t threads_ = 0;
  uint32_t held_threads_ = 0;
  uint64_t lost_blocks_ = 0;
  uint32_t row_count_ = 0;
};

volatile uintptr_t global_word = 0;
thread_local volatile uintptr_t variable_of_thread = 0;
thread_local volatile uintptr_t zeroed_variable[1000] = {};

TEST_F(SnapshotTest, EverythingIsLostWithoutAPointer) {
  EXPECT_EQ(Lost().size(), kBlocks);
  EXPECT_EQ(outcome_, SnapshotOutcome::kDone);
  EXPECT_EQ(lost_blocks_, kBlocks);
  EXPECT_EQ(row_count_, 5u);
}

// Other threads may use what lies below their stack pointers. The thread that asks for the check
// has called it, and has left words of former calls there.
TEST_F(SnapshotTest, MemoryBelowTheStackOfTheCallerIsTheCheckers) {
  volatile uintptr_t words[64] = {};
  const auto own_stack = reinterpret_cast<uintptr_t>(&words[32]);
  Store(3, &words[24]);
  EXPECT_TRUE(Lost({.own_stack = own_stack}).contains(3));
  Store(3, &words[32]);
  EXPECT_FALSE(Lost({.own_stack = own_stack}).contains(3));
}

TEST_F(SnapshotTest, GlobalVariablesAreRoots) {
  global_word = blocks_.Hidden(3) ^ kMask;
  EXPECT_FALSE(Lost().contains(3));
  EXPECT_TRUE(Lost({.global_roots = false}).contains(3));
  global_word = 0;
  EXPECT_TRUE(Lost().contains(3));
}

TEST_F(SnapshotTest, OwnStackAndVariablesAreRoots) {
  volatile uintptr_t on_stack = blocks_.Hidden(1) ^ kMask;
  variable_of_thread = blocks_.Hidden(2) ^ kMask;
  zeroed_variable[999] = blocks_.Hidden(4) ^ kMask;
  const std::set<size_t> lost = Lost();
  EXPECT_FALSE(lost.contains(1) || lost.contains(2) || lost.contains(4));
  EXPECT_EQ(lost.size(), kBlocks - 3);
  EXPECT_EQ(Lost({.thread_roots = false}).size(), kBlocks);
  on_stack = on_stack * 0;
  variable_of_thread = 0;
  zeroed_variable[999] = 0;
  EXPECT_EQ(Lost().size(), kBlocks);
}

TEST_F(SnapshotTest, BlocksLeadToBlocks) {
  global_word = blocks_.Hidden(0) ^ kMask;
  for (size_t i = 0; i + 1 < kBlocks; ++i) {
    *reinterpret_cast<uintptr_t*>(blocks_.Hidden(i) ^ kMask) = blocks_.Hidden(i + 1) ^ kMask;
  }
  EXPECT_TRUE(Lost().empty());
  *reinterpret_cast<uintptr_t*>(blocks_.Hidden(9) ^ kMask) = 0;
  EXPECT_EQ(Lost().size(), kBlocks - 10);
  EXPECT_EQ(Lost({.first_sequence = 15}).size(), kBlocks - 15);
  global_word = 0;
}

TEST_F(SnapshotTest, ChosenWordsAreRoots) {
  const uintptr_t inside = (blocks_.Hidden(7) ^ kMask) + 40;
  const uintptr_t words[] = {inside};
  EXPECT_FALSE(Lost({.live_words = words}).contains(7));
}

TEST_F(SnapshotTest, MappingsLeadToBlocksWhereTheyAreReached) {
  void* memory =
      ::mmap(nullptr, 1 << 16, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  static_cast<uintptr_t*>(memory)[1000] = blocks_.Hidden(5) ^ kMask;
  const Range range = {reinterpret_cast<uintptr_t>(memory),
                       reinterpret_cast<uintptr_t>(memory) + (1 << 16)};
  // The range itself lies on the stack, so that the mapping is reached.
  EXPECT_TRUE(Lost().contains(5));
  EXPECT_FALSE(Lost({.mappings = {&range, 1}}).contains(5));
  // That the checker knows the mapping does not make it reached.
  program_mappings.GetOrMap()->Add(range);
  EXPECT_TRUE(Lost({.thread_roots = false, .mappings = {&range, 1}}).contains(5));
  program_mappings.get()->Remove(range);
  EXPECT_FALSE(
      Lost({.thread_roots = false, .mapping_roots = true, .mappings = {&range, 1}}).contains(5));
  ::munmap(memory, 1 << 16);
}

// Returns the pages of shared memory that anybody has touched.
size_t TouchedPages(void* memory, size_t bytes) {
  constexpr size_t kPageBytes = 4096;
  std::vector<unsigned char> pages((bytes + kPageBytes - 1) / kPageBytes);
  EXPECT_EQ(::mincore(memory, bytes, pages.data()), 0);
  return static_cast<size_t>(
      std::count_if(pages.begin(), pages.end(), [](unsigned char page) { return page % 2 != 0; }));
}

// It is shared memory of the process, and its address lies on the stack.
TEST_F(SnapshotTest, TheResultIsNoMemoryOfTheProgram) {
  SnapshotRequest request;
  request.blocks = &blocks_;
  request.own_stack = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  SnapshotResult* result = NewResult();
  MapsText maps;
  EXPECT_EQ(TakeSnapshot(request, &maps, result), SnapshotOutcome::kDone);
  EXPECT_FALSE(maps.view().empty());
  EXPECT_LT(TouchedPages(result, sizeof(*result)), size_t{8});
  DeleteResult(result);
}

TEST_F(SnapshotTest, SharedMemoryThatNothingLeadsToIsNotReadWithoutALoss) {
  constexpr size_t kBytes = size_t{1} << 20;
  void* memory = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  SnapshotRequest request;
  const FakeBlocks none(0);
  request.blocks = &none;
  request.global_roots = false;
  request.thread_roots = false;
  SnapshotResult* result = NewResult();
  MapsText maps;
  EXPECT_EQ(TakeSnapshot(request, &maps, result), SnapshotOutcome::kDone);
  EXPECT_FALSE(maps.view().empty());
  EXPECT_EQ(TouchedPages(memory, kBytes), size_t{0});
  DeleteResult(result);
  ::munmap(memory, kBytes);
}

// Keeps an address in a register alone, until told to end.
void HoldInRegister(uintptr_t hidden, std::atomic<int>* state) {
#if defined(__x86_64__)
  asm volatile(
      "movq %[hidden], %%r12\n\t"
      "xorq %[mask], %%r12\n\t"
      "movl $1, (%[state])\n"
      "1: pause\n\t"
      "cmpl $1, (%[state])\n\t"
      "je 1b\n\t"
      "xorl %%r12d, %%r12d\n\t"
      :
      : [hidden] "r"(hidden), [mask] "r"(kMask), [state] "r"(state)
      : "r12", "memory", "cc");
#else
  asm volatile(
      "eor x19, %[hidden], %[mask]\n\t"
      "mov w9, #1\n\t"
      "str w9, [%[state]]\n"
      "1: ldr w9, [%[state]]\n\t"
      "cmp w9, #1\n\t"
      "b.eq 1b\n\t"
      "mov x19, xzr\n\t"
      :
      : [hidden] "r"(hidden), [mask] "r"(kMask), [state] "r"(state)
      : "x9", "x19", "memory", "cc");
#endif
}

void AwaitState(const std::atomic<int>& state, int value) {
  while (state.load() != value) std::this_thread::yield();
}

TEST_F(SnapshotTest, RegistersOfOtherThreadsAreRoots) {
  std::atomic<int> state{0};
  std::thread thread([&] { HoldInRegister(blocks_.Hidden(11), &state); });
  AwaitState(state, 1);
  const std::set<size_t> lost = Lost();
  EXPECT_EQ(threads_, 1u);
  EXPECT_EQ(held_threads_, 1u);
  EXPECT_FALSE(lost.contains(11));
  EXPECT_EQ(lost.size(), kBlocks - 1);
  state.store(2);
  thread.join();
  EXPECT_EQ(Lost().size(), kBlocks);
}

TEST_F(SnapshotTest, StacksAndVariablesOfOtherThreadsAreRoots) {
  for (const bool blocked : {false, true}) {
    std::atomic<int> state{0};
    std::thread thread([&] {
      volatile uintptr_t on_stack = blocks_.Hidden(12) ^ kMask;
      variable_of_thread = blocks_.Hidden(13) ^ kMask;
      pthread_key_t key;
      pthread_key_create(&key, nullptr);
      pthread_setspecific(key, reinterpret_cast<void*>(blocks_.Hidden(14) ^ kMask));
      if (blocked) {
        sigset_t all;
        sigfillset(&all);
        pthread_sigmask(SIG_BLOCK, &all, nullptr);
      }
      state.store(1);
      AwaitState(state, 2);
      on_stack = on_stack * 0;
      pthread_key_delete(key);
    });
    AwaitState(state, 1);
    const std::set<size_t> lost = Lost();
    EXPECT_EQ(held_threads_, blocked ? 0u : 1u);
    EXPECT_FALSE(lost.contains(12)) << blocked;
    EXPECT_FALSE(lost.contains(13)) << blocked;
    EXPECT_FALSE(lost.contains(14)) << blocked;
    EXPECT_EQ(lost.size(), kBlocks - 3) << blocked;
    state.store(2);
    thread.join();
  }
}

// Waits for any signal, and stores the first one that comes.
void AwaitSignal(std::atomic<int>* state, int* signal) {
  sigset_t all;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, nullptr);
  state->store(1);
  sigwait(&all, signal);
}

void SleepForMilliseconds(int n) { ::usleep(static_cast<useconds_t>(1000 * n)); }

TEST_F(SnapshotTest, ThreadsThatWaitForSignalsGetNone) {
  std::atomic<int> state{0};
  int signal = 0;
  std::thread thread([&] { AwaitSignal(&state, &signal); });
  AwaitState(state, 1);
  SleepForMilliseconds(50);
  Lost();
  EXPECT_EQ(threads_, 1u);
  EXPECT_EQ(held_threads_, 0u);
  SleepForMilliseconds(20);
  pthread_kill(thread.native_handle(), SIGUSR1);
  thread.join();
  EXPECT_EQ(signal, SIGUSR1);
}

TEST_F(SnapshotTest, TheProgramMayTakeTheSignalBack) {
  std::atomic<int> state{0};
  std::thread thread([&] { HoldInRegister(blocks_.Hidden(11), &state); });
  AwaitState(state, 1);
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(Lost().contains(11));
    EXPECT_EQ(held_threads_, 1u);
    for (int signal = SIGRTMIN; signal <= SIGRTMAX; ++signal) ::signal(signal, SIG_DFL);
  }
  state.store(2);
  thread.join();
}

TEST_F(SnapshotTest, AThreadThatHasEndedIsNotWaitedFor) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::thread([this] {
      SleepForMilliseconds(50);
      timespec start;
      timespec end;
      ::clock_gettime(CLOCK_MONOTONIC, &start);
      for (int i = 0; i < 4; ++i) Lost();
      ::clock_gettime(CLOCK_MONOTONIC, &end);
      ::_exit(end.tv_sec - start.tv_sec > 1 ? 1 : 0);
    }).detach();
    system_calls.exit(0);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

TEST_F(SnapshotTest, ThreadsThatComeAndGo) {
  std::atomic<bool> stop{false};
  std::vector<std::thread> makers;
  for (int i = 0; i < 4; ++i) {
    makers.emplace_back([&stop] {
      while (!stop) std::thread([] {}).join();
    });
  }
  global_word = blocks_.Hidden(3) ^ kMask;
  for (int i = 0; i < 50; ++i) {
    const std::set<size_t> lost = Lost();
    ASSERT_EQ(outcome_, SnapshotOutcome::kDone);
    ASSERT_FALSE(lost.contains(3));
    // libc gives stacks to one thread after the other. That of a thread which is not held is looked
    // at as a whole, with what the earlier ones left.
    ASSERT_GE(lost.size(), kBlocks - 5);
  }
  global_word = 0;
  stop = true;
  for (std::thread& maker : makers) maker.join();
}

TEST_F(SnapshotTest, TheProgramsChildrenAreLeftToIt) {
  Lost();
  EXPECT_EQ(::waitpid(-1, nullptr, 0), -1);
  EXPECT_EQ(errno, ECHILD);
}

// Counts the children that checks make.
class CountedClones {
 public:
  CountedClones() {
    count = 0;
    real = system_calls.clone;
    system_calls.clone = [](unsigned long flags, void* stack, void (*body)(void*), void* argument) {
      ++count;
      return real(flags, stack, body, argument);
    };
  }
  ~CountedClones() { system_calls.clone = real; }

  static inline int count = 0;

 private:
  static inline decltype(system_calls.clone) real = nullptr;
};

TEST_F(SnapshotTest, OneThreadLooksAtItsOwnMemory) {
  const CountedClones clones;
  EXPECT_EQ(Lost().size(), kBlocks);
  EXPECT_EQ(CountedClones::count, 0);
}

TEST_F(SnapshotTest, ProcessesWithThreadsMakeACopy) {
  const CountedClones clones;
  std::atomic<int> state{0};
  std::thread thread([&] {
    state.store(1);
    AwaitState(state, 2);
  });
  AwaitState(state, 1);
  EXPECT_EQ(Lost().size(), kBlocks);
  EXPECT_EQ(CountedClones::count, 1);
  state.store(2);
  thread.join();
}

TEST_F(SnapshotTest, ManyBlocksAreLookedAtInACopy) {
  const CountedClones clones;
  blocks_.ClaimToBeMany();
  EXPECT_EQ(Lost().size(), kBlocks);
  EXPECT_EQ(CountedClones::count, 1);
}

TEST_F(SnapshotTest, FindsTheSameInPlaceAndInACopy) {
  std::mt19937 random(5);
  for (int round = 0; round < 20; ++round) {
    for (size_t i = 0; i < kBlocks; ++i) {
      auto* words = reinterpret_cast<uintptr_t*>(blocks_.Hidden(i) ^ kMask);
      std::fill_n(words, kBlockWords, 0);
      words[random() % kBlockWords] = blocks_.Hidden(random() % kBlocks) ^ kMask;
    }
    global_word = blocks_.Hidden(random() % kBlocks) ^ kMask;
    blocks_.ClaimToBeFew();
    const std::set<size_t> in_place = Lost();
    const uint64_t lost_in_place = lost_blocks_;
    blocks_.ClaimToBeMany();
    EXPECT_EQ(Lost(), in_place);
    EXPECT_EQ(lost_blocks_, lost_in_place);
  }
  global_word = 0;
}

// Does what it is told in the middle of a search.
class ActingFilter final : public StackFilter {
 public:
  explicit ActingFilter(void (*act)()) : act_(act) {}
  bool LeavesOut(std::span<const uintptr_t>) override {
    act_();
    return false;
  }

 private:
  void (*act_)();
};

void ReadNothing() { static_cast<void>(*reinterpret_cast<volatile int*>(uintptr_t{8})); }
void Trap() { __builtin_trap(); }
void Abort() { std::abort(); }

std::atomic<int> handled{0};
void CountSignal(int) { ++handled; }

TEST_F(SnapshotTest, FaultsOfTheSearchAreNotTheProgramsFaults) {
  handled = 0;
  ASSERT_NE(::signal(SIGSEGV, CountSignal), SIG_ERR);
  for (void (*const act)() : {ReadNothing, Trap, Abort}) {
    const CountedClones clones;
    ActingFilter filter(act);
    EXPECT_TRUE(Lost({.filter = &filter}).empty());
    // The child tries again, and fails.
    EXPECT_EQ(outcome_, SnapshotOutcome::kChildFailed);
    EXPECT_EQ(CountedClones::count, 1);
  }
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(::signal(SIGSEGV, SIG_DFL), CountSignal);
  EXPECT_EQ(Lost().size(), kBlocks);
}

pid_t faulting_process = 0;

TEST_F(SnapshotTest, AChildFinishesWhatAFaultHasEnded) {
  faulting_process = ::getpid();
  ActingFilter filter([] {
    if (::getpid() == faulting_process) ReadNothing();
  });
  EXPECT_EQ(Lost({.filter = &filter}).size(), kBlocks);
  EXPECT_EQ(outcome_, SnapshotOutcome::kDone);
  EXPECT_EQ(lost_blocks_, kBlocks);
  EXPECT_EQ(row_count_, 5u);
}

TEST_F(SnapshotTest, SignalsThatComeMeanwhileComeAfterwards) {
  for (const int signal : {SIGUSR1, SIGSEGV}) {
    static int sent;
    static int handled_in_check;
    sent = signal;
    handled_in_check = 0;
    handled = 0;
    ASSERT_NE(::signal(signal, CountSignal), SIG_ERR);
    ActingFilter filter([] {
      if (const int now = std::exchange(sent, 0)) ::kill(::getpid(), now);
      handled_in_check += handled;
    });
    EXPECT_EQ(Lost({.filter = &filter}).size(), kBlocks);
    EXPECT_EQ(outcome_, SnapshotOutcome::kDone);
    EXPECT_EQ(handled_in_check, 0) << signal;
    EXPECT_EQ(handled, 1) << signal;
    EXPECT_EQ(::signal(signal, SIG_DFL), CountSignal);
  }
}

TEST_F(SnapshotTest, TellsThatItCannotFork) {
  blocks_.ClaimToBeMany();
  const auto real = system_calls.clone;
  system_calls.clone = [](unsigned long, void*, void (*)(void*), void*) -> pid_t {
    errno = EAGAIN;
    return -1;
  };
  EXPECT_TRUE(Lost().empty());
  EXPECT_EQ(outcome_, SnapshotOutcome::kNoFork);
  // A process with one thread and few blocks need not.
  blocks_.ClaimToBeFew();
  EXPECT_EQ(Lost().size(), kBlocks);
  system_calls.clone = real;
  blocks_.ClaimToBeMany();
  EXPECT_EQ(Lost().size(), kBlocks);
}

// This thread is the process's first. The last test, because it leaves an address on the stack.
TEST_F(SnapshotTest, TheStackOfTheFirstThreadIsARoot) {
  ASSERT_EQ(::gettid(), ::getpid());
  volatile uintptr_t on_stack = blocks_.Hidden(12) ^ kMask;
  sigset_t all;
  sigset_t old;
  sigfillset(&all);
  pthread_sigmask(SIG_BLOCK, &all, &old);
  std::thread([&] { EXPECT_FALSE(Lost().contains(12)); }).join();
  EXPECT_EQ(held_threads_, 0u);
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
  std::thread([&] { EXPECT_FALSE(Lost().contains(12)); }).join();
  EXPECT_EQ(held_threads_, 1u);
  on_stack = on_stack * 0;
}

}  // namespace
}  // namespace tcmalloc
