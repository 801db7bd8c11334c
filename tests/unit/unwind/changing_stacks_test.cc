// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks, threads, code and processes that go and come back between two walks: what is remembered
// of the first is beside what a fresh walk finds now, and nothing that is gone is read.

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include "fakes/address_sanitizer.h"
#include "fakes/thread_sanitizer.h"
#include "unit/unwind/captured_stack.h"
#include "unwind/machine.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 128;

using Stack = CapturedStack<kMost>;

// Counted instead of reported, because reporting allocates and these run on small stacks.
std::atomic<int> compared{0};
std::atomic<int> different{0};
thread_local int frames_of_last = 0;

void CompareFrom(const Registers& registers) {
  static thread_local int sizes[kMost];
  static thread_local Stack remembered;
  static thread_local Stack fresh;
  remembered.count =
      CaptureCallers(registers, {.addresses = remembered.frames.data(), .limit = kMost}, 0);
  // A walk that is asked for the sizes of frames remembers nothing.
  fresh.count = CaptureCallers(
      registers, {.addresses = fresh.frames.data(), .sizes = sizes, .limit = kMost}, 0);
  frames_of_last = fresh.count;
  compared.fetch_add(1, std::memory_order_relaxed);
  if (!(remembered == fresh)) different.fetch_add(1, std::memory_order_relaxed);
}

__attribute__((noinline)) void Compare() {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  CompareFrom(registers);
}

__attribute__((noinline)) void CompareDeep(int depth) {
  Compare();
  if (depth > 0) CompareDeep(depth - 1);
  Compare();
}

class ChangingStacksTest : public ::testing::Test {
 protected:
  ChangingStacksTest() {
    compared = 0;
    different = 0;
  }
  ~ChangingStacksTest() override {
    if (IsSkipped()) return;
    EXPECT_GT(compared, 0);
    EXPECT_EQ(different, 0);
  }
};

size_t PageBytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }

// Memory at an address that was found once and is mapped and unmapped since.
class Place {
 public:
  explicit Place(size_t bytes)
      : bytes_(bytes),
        memory_(::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) {}
  ~Place() { ::munmap(memory_, bytes_); }
  Place(const Place&) = delete;
  Place& operator=(const Place&) = delete;

  char* start() const { return static_cast<char*>(memory_); }
  // Makes `bytes` bytes from `offset` on new memory.
  char* Map(size_t offset, size_t bytes, int protection = PROT_READ | PROT_WRITE) {
    void* const memory =
        ::mmap(start() + offset, bytes, protection, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    return static_cast<char*>(memory);
  }
  // Whoever reads it faults.
  void Unmap(size_t offset, size_t bytes) { Map(offset, bytes, PROT_NONE); }

 private:
  size_t bytes_;
  void* memory_;
};

// A function that runs on a stack of its own, and gives the thread back several times.
class Coroutine {
 public:
  Coroutine(char* stack, size_t bytes, void (*function)(int), int argument) {
    ::getcontext(&own_);
    own_.uc_stack.ss_sp = stack;
    own_.uc_stack.ss_size = bytes;
    own_.uc_link = &back_;
    ::makecontext(&own_, reinterpret_cast<void (*)()>(function), 1, argument);
  }

  void Resume() {
    running = this;
    ::swapcontext(&back_, &own_);
  }
  static void GiveBack() {
    Coroutine* const current = running;
    ::swapcontext(&current->own_, &current->back_);
  }

 private:
  static inline thread_local Coroutine* running = nullptr;
  ucontext_t own_;
  ucontext_t back_;
};

constexpr size_t kCoroutineBytes = 64 << 10;

TEST_F(ChangingStacksTest, StacksOfCoroutinesAreUnmappedAndMappedAgain) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "it has to be told of other stacks";
  Place place(4 * kCoroutineBytes);
  const auto run = [&] {
    for (int i = 0; i < 200; ++i) {
      // Now a large one, now one that ends where the other was in use.
      const size_t bytes = i % 2 == 0 ? 3 * kCoroutineBytes
                                      : kCoroutineBytes + PageBytes() * static_cast<size_t>(i % 7);
      char* const stack = place.Map(PageBytes(), bytes);
      Coroutine coroutine(stack, bytes, CompareDeep, i % 13);
      coroutine.Resume();
      Compare();
      place.Unmap(0, 4 * kCoroutineBytes);
      Compare();
    }
  };
  run();
  std::thread(run).join();
}

void GiveBackDeep(int depth) {
  Compare();
  if (depth > 0) GiveBackDeep(depth - 1);
  Coroutine::GiveBack();
  Compare();
}

TEST_F(ChangingStacksTest, CoroutinesTakeTurns) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "it has to be told of other stacks";
  Place place(8 * kCoroutineBytes);
  constexpr int kDepth = 9;
  std::vector<Coroutine> coroutines;
  coroutines.reserve(4);
  for (size_t i = 0; i < 4; ++i) {
    char* const stack = place.Map(2 * i * kCoroutineBytes, kCoroutineBytes);
    coroutines.emplace_back(stack, kCoroutineBytes, GiveBackDeep, kDepth);
  }
  for (int turn = 0; turn <= kDepth + 1; ++turn) {
    for (Coroutine& coroutine : coroutines) {
      coroutine.Resume();
      Compare();
    }
  }
}

// A program that hands out stacks for threads and for coroutines from one piece of memory, without
// pages between them.
struct AdjacentStacks {
  Place place{8 * kCoroutineBytes};
  // The thread's stack is the upper half.
  static constexpr size_t kThreadStart = 4 * kCoroutineBytes;
};

// The end of a stack as a program makes it that has its own way to switch: the outermost function's
// caller is not marked, so that a walk goes on beyond it.
__attribute__((noinline)) void CompareWithFrameBeyond(char* stack_end) {
  Registers registers;
  machine::ReadOwnRegisters(&registers);
  registers.values[machine::kStackPointer] = reinterpret_cast<uintptr_t>(stack_end) - 64;
  registers.values[machine::kFramePointer] = reinterpret_cast<uintptr_t>(stack_end) + 256;
  // No table has this address, so that the frame pointer is followed.
  registers.values[machine::kPc] = reinterpret_cast<uintptr_t>(stack_end) - 32;
  CompareFrom(registers);
  // By the table of this function, whose frame is thought to lie at the end of the mapped part.
  machine::ReadOwnRegisters(&registers);
  registers.values[machine::kFramePointer] = 0;
  for (uintptr_t below = 8; below <= 512; below += 8) {
    registers.values[machine::kStackPointer] = reinterpret_cast<uintptr_t>(stack_end) - below;
    CompareFrom(registers);
  }
}

// So that the walk begins near the stack's start.
void CompareFarDown(int bytes) {
  auto* const array = static_cast<volatile char*>(__builtin_alloca(static_cast<size_t>(bytes)));
  array[0] = 0;
  Compare();
  array[1] = 0;
}

void* RunBesideCoroutines(void* argument) {
  auto& stacks = *static_cast<AdjacentStacks*>(argument);
  constexpr size_t kStart = AdjacentStacks::kThreadStart;
  for (int i = 0; i < 20; ++i) {
    // Directly below the thread's own stack, so that all from it to the thread's is readable.
    char* const upper = stacks.place.Map(kStart - 2 * kCoroutineBytes, 2 * kCoroutineBytes);
    constexpr int kFarDown = 2 * int{kCoroutineBytes} - 16 * 1024;
    Coroutine(upper, 2 * kCoroutineBytes, CompareFarDown, kFarDown).Resume();
    stacks.place.Unmap(kStart - 2 * kCoroutineBytes, 2 * kCoroutineBytes);
    // Another one begins at the same place, and ends before the thread's stack does.
    char* const lower = stacks.place.Map(kStart - 2 * kCoroutineBytes, kCoroutineBytes);
    Coroutine(lower, kCoroutineBytes, CompareDeep, 3).Resume();
    // What it left there leads anywhere.
    std::memset(lower, 0, kCoroutineBytes);
    CompareWithFrameBeyond(lower + kCoroutineBytes);
    stacks.place.Unmap(kStart - 2 * kCoroutineBytes, kCoroutineBytes);
    Compare();
  }
  return nullptr;
}

TEST_F(ChangingStacksTest, StacksWithoutPagesBetweenThem) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "it has to be told of other stacks";
  AdjacentStacks stacks;
  char* const own = stacks.place.Map(AdjacentStacks::kThreadStart, 4 * kCoroutineBytes);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ASSERT_EQ(::pthread_attr_setstack(&attributes, own, 4 * kCoroutineBytes), 0);
  pthread_t thread;
  ASSERT_EQ(::pthread_create(&thread, &attributes, RunBesideCoroutines, &stacks), 0);
  ::pthread_join(thread, nullptr);
  ::pthread_attr_destroy(&attributes);
}

TEST_F(ChangingStacksTest, ThreadsEndAndOthersTakeTheirDescriptors) {
  for (int i = 0; i < 300; ++i) {
    std::array<std::thread, 4> threads;
    for (std::thread& thread : threads) thread = std::thread(CompareDeep, i % 17);
    for (std::thread& thread : threads) thread.join();
  }
}

jmp_buf far_up;

void JumpUp() { ::longjmp(far_up, 1); }
void (*volatile jump_up)() = JumpUp;

__attribute__((noinline)) void JumpFrom(int depth) {
  Compare();
  if (depth > 0) {
    JumpFrom(depth - 1);
  } else {
    jump_up();
  }
  asm volatile("");
}

__attribute__((noinline)) void JumpBackFrom(int depth) {
  if (setjmp(far_up) == 0) JumpFrom(depth);
  Compare();
}

__attribute__((noinline)) void ThrowFrom(int depth) {
  Compare();
  if (depth > 0) {
    ThrowFrom(depth - 1);
  } else {
    throw depth;
  }
  asm volatile("");
}

TEST_F(ChangingStacksTest, FunctionsThatNeverReturn) {
  for (int i = 0; i < 200; ++i) {
    JumpBackFrom(i % 11);
    try {
      ThrowFrom(i % 7);
    } catch (int) {
      Compare();
    }
  }
}

TEST_F(ChangingStacksTest, ForksWhileOthersWalk) {
  if (kThreadSanitizer) GTEST_SKIP() << "it does not like forks of threads";
  std::atomic<bool> done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([&] {
      while (!done) CompareDeep(10);
    });
  }
  const auto fork_and_compare = [] {
    for (int i = 0; i < 20; ++i) {
      const pid_t child = ::fork();
      if (child == 0) {
        different = 0;
        for (int k = 0; k < 20; ++k) CompareDeep(k);
        ::_exit(different == 0 ? 0 : 1);
      }
      int status = 0;
      ASSERT_EQ(::waitpid(child, &status, 0), child);
      EXPECT_EQ(status, 0);
      CompareDeep(5);
    }
  };
  fork_and_compare();
  // The child's first thread has the stack of one that was not.
  std::thread(fork_and_compare).join();
  done = true;
  for (std::thread& thread : threads) thread.join();
}

void CompareInHandler(int) { CompareDeep(3); }

TEST_F(ChangingStacksTest, AlternateStacksThatComeAndGo) {
  if (kAddressSanitizer || kThreadSanitizer) GTEST_SKIP() << "it has to be told of other stacks";
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = CompareInHandler;
  action.sa_flags = SA_ONSTACK;
  ASSERT_EQ(::sigaction(SIGUSR1, &action, &old), 0);
  Place place(2 * kCoroutineBytes);
  for (int i = 0; i < 100; ++i) {
    const size_t offset = i % 2 == 0 ? 0 : kCoroutineBytes;
    const stack_t alternate = {
        .ss_sp = place.Map(offset, kCoroutineBytes), .ss_flags = 0, .ss_size = kCoroutineBytes};
    ASSERT_EQ(::sigaltstack(&alternate, nullptr), 0);
    CompareDeep(2);
    ::raise(SIGUSR1);
    Compare();
    const stack_t none = {.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
    ASSERT_EQ(::sigaltstack(&none, nullptr), 0);
    place.Unmap(offset, kCoroutineBytes);
  }
  ::sigaction(SIGUSR1, &old, nullptr);
}

using CallBack = void (*)(void (*callback)());

void* Load(const char* name, CallBack* call_back) {
  void* const handle = ::dlopen((std::string(TCM_PLUGIN_FOLDER) + "/" + name).c_str(), RTLD_NOW);
  if (handle == nullptr) {
    ADD_FAILURE() << ::dlerror();
    return nullptr;
  }
  *call_back = reinterpret_cast<CallBack>(::dlsym(handle, "CallBack"));
  return handle;
}

// The walk goes through the library, in whose place another one was at the last walk.
__attribute__((noinline)) void CompareThrough(const char* name) {
  CallBack call_back = nullptr;
  void* const handle = Load(name, &call_back);
  call_back(Compare);
  EXPECT_GT(frames_of_last, 5);
  ::dlclose(handle);
}

TEST_F(ChangingStacksTest, LibrariesInPlaceOfOthers) {
  const auto run = [] {
    for (int i = 0; i < 50; ++i) {
      CompareThrough("libunwind_plugin_a.so");
      CompareThrough("libunwind_plugin_b.so");
      CompareThrough("libunwind_plugin_b.so");
      // In reverse order of their going, so that places are exchanged.
      CallBack first = nullptr;
      CallBack second = nullptr;
      void* const a = Load("libunwind_plugin_a.so", &first);
      void* const b = Load("libunwind_plugin_b.so", &second);
      first(Compare);
      second(Compare);
      ::dlclose(a);
      second(Compare);
      ::dlclose(b);
    }
  };
  run();
  std::thread(run).join();
}

TEST_F(ChangingStacksTest, LibrariesThatOtherThreadsLoad) {
  if (kThreadSanitizer) GTEST_SKIP() << "it does not see the locks of the dynamic linker";
  std::vector<std::thread> threads;
  for (int i = 0; i < 3; ++i) {
    threads.emplace_back([i] {
      for (int k = 0; k < 60; ++k) {
        CompareThrough((i + k) % 2 == 0 ? "libunwind_plugin_a.so" : "libunwind_plugin_b.so");
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

#if defined(__x86_64__)

// push %rbp; mov %rsp, %rbp; call *%rdi; pop %rbp; ret
constexpr unsigned char kWithFramePointer[] = {0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3};
// push %rbp; xor %ebp, %ebp; not %rbp; call *%rdi; pop %rbp; ret
constexpr unsigned char kWithWrongFramePointer[] = {0x55, 0x31, 0xed, 0x48, 0xf7,
                                                    0xd5, 0xff, 0xd7, 0x5d, 0xc3};

TEST_F(ChangingStacksTest, CodeWithoutTablesInPlaceOfALibrary) {
  if (kAddressSanitizer) GTEST_SKIP() << "it keeps libraries that are closed";
  int same_place = 0;
  for (int i = 0; i < 40; ++i) {
    CallBack call_back = nullptr;
    void* const handle = Load("libunwind_plugin_a.so", &call_back);
    call_back(Compare);
    ::dlclose(handle);
    // Where the library's function was, in a page that may be free now.
    const size_t page_bytes = PageBytes();
    const auto address = reinterpret_cast<uintptr_t>(call_back);
    void* const page = ::mmap(reinterpret_cast<void*>(address / page_bytes * page_bytes),
                              page_bytes, PROT_READ | PROT_WRITE | PROT_EXEC,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    if (page == MAP_FAILED) continue;
    ++same_place;
    for (const bool right : {true, false, true}) {
      const unsigned char* const code = right ? kWithFramePointer : kWithWrongFramePointer;
      std::memcpy(reinterpret_cast<void*>(address), code,
                  right ? sizeof(kWithFramePointer) : sizeof(kWithWrongFramePointer));
      call_back(Compare);
      if (right) {
        EXPECT_GT(frames_of_last, 5);
      }
    }
    ::munmap(page, page_bytes);
  }
  if (same_place == 0) GTEST_SKIP() << "nothing could be mapped to the place of the library";
}

// A trap after each instruction of a walk that remembers. Its handler walks, too: before the
// interrupted walk has claimed what is remembered, meanwhile, and after it.
void CompareInTrap(int, siginfo_t*, void* context) {
  static thread_local int steps = 0;
  // All instructions would take long.
  if (++steps % 3 != 0) return;
  static thread_local void* frames[kMost];
  CaptureInterrupted(context, {.addresses = frames, .limit = kMost}, 0);
  Compare();
}

__attribute__((noinline)) void CompareWhileTrapped() {
  void* frames[kMost];
  void* after[kMost];
  asm volatile("pushfq\n\torq $0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
  const int count = CaptureStack(frames, kMost, 0);
  asm volatile("pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq" : : : "memory", "cc");
  const int count_after = CaptureStack(after, kMost, 0);
  EXPECT_EQ(count, count_after);
  EXPECT_TRUE(std::equal(frames, frames + count, after));
}

TEST_F(ChangingStacksTest, AHandlerWalksAtEachInstructionOfAWalk) {
  if (kThreadSanitizer || kAddressSanitizer) GTEST_SKIP() << "its own functions would be stepped";
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_sigaction = CompareInTrap;
  action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(::sigaction(SIGTRAP, &action, &old), 0);
  ::raise(SIGTRAP);
  for (int i = 0; i < 9; ++i) {
    CompareWhileTrapped();
    // As far as the walk before, and then from one frame further down.
    [&]() __attribute__((noinline)) { CompareWhileTrapped(); }();
    CompareDeep(i);
  }
  ::sigaction(SIGTRAP, &old, nullptr);
}

#endif  // __x86_64__

}  // namespace
}  // namespace tcmalloc::testing
