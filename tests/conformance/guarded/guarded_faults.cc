// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Each kind of mistake at a guarded block is reported with its stacks, and the program then ends or
// goes on as it would without the library. Runs with options that guard every block.

#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <string>
#include <thread>
#include <vector>

#include "conformance/child.h"

namespace {

using tcmalloc::testing::ChildResult;
using tcmalloc::testing::RunInChild;

int failures = 0;

void Expect(const char* name, bool ok, const ChildResult& result) {
  if (ok) return;
  ++failures;
  std::cerr << "FAILED: " << name << ": " << result << "\n";
}

// Expects all texts, in this order.
bool Has(const std::string& errors, std::initializer_list<const char*> texts) {
  size_t at = 0;
  for (const char* text : texts) {
    at = errors.find(text, at);
    if (at == std::string::npos) return false;
    at += std::strlen(text);
  }
  return true;
}

size_t CountOf(const std::string& errors, const std::string& text) {
  size_t count = 0;
  for (size_t at = errors.find(text); at != std::string::npos; at = errors.find(text, at + 1)) {
    ++count;
  }
  return count;
}

// The size of a block that is guarded is what was asked for, which no size class has.
constexpr size_t kSize = 100;

bool IsGuarded(void* block) { return malloc_usable_size(block) == kSize; }

extern "C" __attribute__((noinline)) void* AllocateHere() {
  void* block = std::malloc(kSize);
  if (!IsGuarded(block)) _exit(9);
  return block;
}
extern "C" __attribute__((noinline)) void FreeHere(void* block) {
  std::free(block);
  asm volatile("" ::: "memory");
}
extern "C" __attribute__((noinline)) void ReadHere(const volatile char* byte) {
  static_cast<void>(*byte);
}
extern "C" __attribute__((noinline)) void WriteHere(volatile char* byte) { *byte = 1; }

// Blocks lie at the end of their pages and at the beginning in turn.
char* AllocateAtEnd() {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (;;) {
    auto* block = static_cast<char*>(AllocateHere());
    if (reinterpret_cast<uintptr_t>(block) % page != 0) return block;
  }
}
char* AllocateAtBeginning() {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  for (;;) {
    auto* block = static_cast<char*>(AllocateHere());
    if (reinterpret_cast<uintptr_t>(block) % page == 0) return block;
  }
}

void TestAccesses() {
  ChildResult result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    ReadHere(block + 3);
  });
  Expect(
      "read after free",
      result.Killed(SIGSEGV) &&
          Has(result.errors, {"use after free: read of", "byte 3 of the freed block of 100 bytes",
                              "accessed by", "@ 0x", "allocated by", "@ 0x", "freed by", "@ 0x"}),
      result);
  result = RunInChild([] {
    char* block = AllocateAtEnd();
    std::thread([block] { FreeHere(block); }).join();
    WriteHere(block);
  });
  Expect("write after a free in another thread",
         result.Killed(SIGSEGV) && Has(result.errors, {"use after free: write to", "byte 0 of",
                                                       "allocated by", "freed by"}),
         result);
  result = RunInChild([] { ReadHere(AllocateAtEnd() + kSize + 12); });
  Expect("read behind",
         result.Killed(SIGSEGV) &&
             Has(result.errors, {"overflow: read of", "byte 13 behind the block of 100 bytes",
                                 "accessed by", "allocated by"}) &&
             CountOf(result.errors, "freed by") == 0,
         result);
  result = RunInChild([] { WriteHere(AllocateAtEnd() + kSize + 2000); });
  Expect("write far behind",
         result.Killed(SIGSEGV) &&
             Has(result.errors, {"overflow: write to", "byte 2001 behind the block"}),
         result);
  result = RunInChild([] { WriteHere(AllocateAtBeginning() - 1); });
  Expect("write before",
         result.Killed(SIGSEGV) &&
             Has(result.errors, {"underflow: write to", "byte 1 before the block of 100 bytes"}),
         result);
}

void TestFrees() {
  ChildResult result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    FreeHere(block);
  });
  Expect("double free",
         result.Killed(SIGABRT) &&
             Has(result.errors, {"double free of", "noticed by", "allocated by", "freed by"}),
         result);
  result = RunInChild([] { FreeHere(AllocateAtEnd() + 16); });
  Expect("interior free",
         result.Killed(SIGABRT) &&
             Has(result.errors, {"invalid free of", "points into", "allocated by"}),
         result);
  result = RunInChild([] {
    char* block = AllocateAtEnd();
    WriteHere(block + kSize);
    FreeHere(block);
  });
  Expect(
      "overflow found at free",
      result.Killed(SIGABRT) && Has(result.errors, {"overflow of the block of 100 bytes",
                                                    "byte 1 behind", "allocated by", "freed by"}),
      result);
  result = RunInChild([] {
    char* block = AllocateAtEnd();
    WriteHere(block - 5);
    FreeHere(block);
  });
  Expect("underflow found at free",
         result.Killed(SIGABRT) && Has(result.errors, {"underflow of", "byte 5 before"}), result);
  result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    static_cast<void>(malloc_usable_size(block));
  });
  Expect("size of a freed block",
         result.Killed(SIGABRT) && Has(result.errors, {"malloc_usable_size", "freed by"}), result);
}

// Correct uses of guarded blocks.
void TestCorrectUses() {
  const ChildResult result = RunInChild([] {
    for (int round = 0; round < 3000; ++round) {
      auto* text = static_cast<char*>(std::malloc(10));
      std::memset(text, 'a', malloc_usable_size(text));
      text = static_cast<char*>(std::realloc(text, 5));
      text = static_cast<char*>(std::realloc(text, 300));
      text = static_cast<char*>(std::realloc(text, 5000));
      if (text[4] != 'a') _exit(2);
      std::free(text);
      auto* zeros = static_cast<char*>(std::calloc(7, 11));
      for (int i = 0; i < 77; ++i) {
        if (zeros[i] != 0) _exit(3);
      }
      std::free(zeros);
      for (size_t alignment = 8; alignment <= 8192; alignment *= 2) {
        void* aligned = memalign(alignment, 24);
        if (reinterpret_cast<uintptr_t>(aligned) % alignment != 0) _exit(4);
        std::memset(aligned, 1, malloc_usable_size(aligned));
        std::free(aligned);
      }
      auto* number = new uint64_t(7);
      operator delete(number, sizeof(*number));
      std::free(std::malloc(0));
      std::free(std::malloc(1));
    }
  });
  Expect("correct uses", result.Exited(0) && result.errors.empty(), result);
}

sigjmp_buf after_fault;
volatile sig_atomic_t faults_seen = 0;
volatile sig_atomic_t ran_on_alternate_stack = 0;
const void* volatile seen_address = nullptr;

void OnFault(int, siginfo_t* info, void*) {
  stack_t now = {};
  sigaltstack(nullptr, &now);
  ran_on_alternate_stack = (now.ss_flags & SS_ONSTACK) != 0;
  seen_address = info->si_addr;
  faults_seen = faults_seen + 1;
  siglongjmp(after_fault, 1);
}

void InstallOwnHandler() {
  static char stack[8192];
  stack_t alternate = {};
  alternate.ss_sp = stack;
  alternate.ss_size = sizeof(stack);
  sigaltstack(&alternate, nullptr);
  struct sigaction action = {};
  action.sa_sigaction = OnFault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
}

// A handler that the program sets, before any guarded block or after, gets the fault on its
// alternate stack, after the report.
void TestOwnHandler(bool early) {
  const ChildResult result = RunInChild([early] {
    if (early) InstallOwnHandler();
    char* block = AllocateAtEnd();
    if (!early) InstallOwnHandler();
    char* other = AllocateAtEnd();
    FreeHere(block);
    for (int i = 0; i < 2; ++i) {
      if (sigsetjmp(after_fault, 1) == 0) ReadHere(block + i);
      if (seen_address != block + i || ran_on_alternate_stack == 0) _exit(3);
    }
    if (sigsetjmp(after_fault, 1) == 0) ReadHere(nullptr);
    FreeHere(other);
    _exit(faults_seen == 3 ? 0 : 4);
  });
  Expect(early ? "own handler before" : "own handler after",
         result.Exited(0) && CountOf(result.errors, "use after free") == 1, result);
}

struct sigaction found_action;

void OnFaultAndOn(int signal, siginfo_t* info, void* context) {
  static_cast<void>(write(STDERR_FILENO, "handler\n", 8));
  if ((found_action.sa_flags & SA_SIGINFO) != 0) {
    return found_action.sa_sigaction(signal, info, context);
  }
  signal = SIGSEGV;
  std::signal(signal, SIG_DFL);
}

// A handler that goes on to what it found, which is the library's own.
void TestHandlerThatGoesOn() {
  const ChildResult result = RunInChild([] {
    char* block = AllocateAtEnd();
    struct sigaction action = {};
    action.sa_sigaction = OnFaultAndOn;
    action.sa_flags = SA_SIGINFO;
    sigaction(SIGSEGV, &action, &found_action);
    FreeHere(AllocateAtEnd());
    FreeHere(block);
    ReadHere(block);
  });
  Expect("handler that goes on",
         result.Killed(SIGSEGV) && CountOf(result.errors, "handler\n") == 1 &&
             CountOf(result.errors, "use after free") == 1,
         result);
}

void TestOtherFaults() {
  ChildResult result = RunInChild([] {
    AllocateHere();
    ReadHere(nullptr);
  });
  Expect("fault elsewhere", result.Killed(SIGSEGV) && result.errors.empty(), result);
  result = RunInChild([] {
    AllocateHere();
    kill(getpid(), SIGSEGV);
    sleep(1);
  });
  Expect("sent signal", result.Killed(SIGSEGV) && result.errors.empty(), result);
  result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    if (write(STDERR_FILENO, block, 1) >= 0) _exit(5);
  });
  Expect("system call", result.Exited(0) && result.errors.empty(), result);
}

void TestThreads() {
  ChildResult result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    std::vector<std::thread> threads;
    for (int i = 0; i < 8; ++i) threads.emplace_back([block] { ReadHere(block); });
    for (std::thread& thread : threads) thread.join();
  });
  Expect("eight threads at once",
         result.Killed(SIGSEGV) && CountOf(result.errors, "use after free") == 1 &&
             CountOf(result.errors, "accessed by") == 1,
         result);
  result = RunInChild([] {
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([] {
        for (int round = 0; round < 3000; ++round) {
          void* block = std::malloc(kSize);
          std::memset(block, 1, kSize);
          std::free(block);
        }
      });
    }
    for (int i = 0; i < 50; ++i) {
      const pid_t child = fork();
      if (child == 0) {
        void* block = AllocateHere();
        FreeHere(block);
        _exit(0);
      }
      int status = 0;
      waitpid(child, &status, 0);
      if (status != 0) _exit(6);
    }
    for (std::thread& thread : threads) thread.join();
  });
  Expect("threads and forks", result.Exited(0) && result.errors.empty(), result);
}

// A freed block stays inaccessible while others come and go.
void TestLateReuse() {
  const ChildResult result = RunInChild([] {
    char* block = AllocateAtEnd();
    FreeHere(block);
    for (int i = 0; i < 500; ++i) std::free(std::malloc(kSize));
    ReadHere(block);
  });
  Expect("read long after free",
         result.Killed(SIGSEGV) && Has(result.errors, {"use after free", "freed by"}), result);
}

}  // namespace

int main() {
  TestAccesses();
  TestFrees();
  TestCorrectUses();
  TestOwnHandler(/*early=*/true);
  TestOwnHandler(/*early=*/false);
  TestHandlerThatGoesOn();
  TestOtherFaults();
  TestThreads();
  TestLateReuse();
  if (failures == 0) std::cerr << "passed\n";
  return failures == 0 ? 0 : 1;
}
