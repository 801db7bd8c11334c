// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Handlers on an alternate stack of 8 KiB, and threads with the smallest stack: blocks are served
// there, and a mistake is reported with the program's call before the process ends by SIGABRT.

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

#include "conformance/child.h"

namespace {

constexpr size_t kKiB = 1024;

template <typename T>
T* Hide(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}

// Frees a block twice. Begins at a multiple of its most bytes, by which its calls are known.
constexpr size_t kMostCode = 256;
__attribute__((noinline, aligned(kMostCode))) void FreeTwice() {
  char* block = Hide(static_cast<char*>(malloc(100)));
  free(block);
  free(Hide(block));
  asm volatile("");
}

// Takes the slowest ways that malloc, realloc and free have.
void UseBlocks() {
  constexpr int kBlocks = 20;
  std::array<void*, kBlocks> blocks;
  for (int i = 0; i < kBlocks; ++i) blocks[i] = malloc(i * 500);
  for (void* block : blocks) free(Hide(block));
  void* block = realloc(Hide(malloc(10)), 1'000'000);
  free(Hide(block));
}

// Runs `handler` on a stack of 8 KiB, unless the processor's registers alone need more. The page
// below it cannot be used.
void HandleOnSmallStack(void (*handler)(int)) {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto registers = static_cast<size_t>(std::max(sysconf(_SC_MINSIGSTKSZ), 0L));
  const size_t bytes = (std::max(8 * kKiB, registers + 5 * kKiB) + page - 1) / page * page;
  auto* guarded = static_cast<char*>(
      mmap(nullptr, page + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  if (guarded == MAP_FAILED) abort();
  if (mprotect(guarded + page, bytes, PROT_READ | PROT_WRITE) != 0) abort();
  const stack_t stack{.ss_sp = guarded + page, .ss_flags = 0, .ss_size = bytes};
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_ONSTACK;
  if (sigaltstack(&stack, nullptr) != 0 || sigaction(SIGUSR1, &action, nullptr) != 0) abort();
  raise(SIGUSR1);
}

void* FailInThread(void* barrier) {
  if (barrier != nullptr) pthread_barrier_wait(static_cast<pthread_barrier_t*>(barrier));
  FreeTwice();
  return nullptr;
}

pthread_t StartSmallThread(void* barrier) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)));
  pthread_t thread{};
  if (pthread_create(&thread, &attributes, FailInThread, barrier) != 0) exit(2);
  return thread;
}

void FailInThreads() {
  constexpr int kThreads = 8;
  pthread_barrier_t barrier;
  pthread_barrier_init(&barrier, nullptr, kThreads);
  std::array<pthread_t, kThreads> threads;
  for (pthread_t& thread : threads) thread = StartSmallThread(&barrier);
  for (const pthread_t thread : threads) pthread_join(thread, nullptr);
}

struct Mistake {
  const char* name;
  void (*make)();
};
const Mistake kMistakes[] = {
    {"handler", [] { HandleOnSmallStack([](int) { FreeTwice(); }); }},
    {"thread", [] { pthread_join(StartSmallThread(nullptr), nullptr); }},
    {"threads", FailInThreads},
};

// Returns true if the first frame behind "noticed by" is that of the program's call.
bool BeginsWithCall(const std::string& text) {
  const size_t noticed = text.find("oticed by free");
  const size_t frame = noticed != std::string::npos ? text.find("@ 0x", noticed) : noticed;
  if (frame == std::string::npos) return false;
  const uintptr_t address = strtoull(text.c_str() + frame + 2, nullptr, 16);
  return address - reinterpret_cast<uintptr_t>(&FreeTwice) < kMostCode;
}

bool Fails(const Mistake& mistake) {
  const tcmalloc::testing::ChildResult result = tcmalloc::testing::RunInChild(mistake.make);
  if (result.Killed(SIGABRT) && BeginsWithCall(result.errors)) return true;
  printf("%s: status %d\n%s", mistake.name, result.status, result.errors.c_str());
  return false;
}

}  // namespace

int main() {
  int wrong = 0;
  for (const Mistake& mistake : kMistakes) wrong += Fails(mistake) ? 0 : 1;
  const auto served =
      tcmalloc::testing::RunInChild([] { HandleOnSmallStack([](int) { UseBlocks(); }); });
  if (!served.Exited(0)) {
    printf("no mistake: status %d\n%s", served.status, served.errors.c_str());
    ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}
