// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much stack the allocator uses: threads may have PTHREAD_STACK_MIN of it, and signal handlers
// a stack of 8 KiB. The stack below each call is painted, and what lost its paint was used. The
// environment sets a heap limit of 192 MiB and a short half-life, so that memory is shed and
// released on the way.

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kKiB = 1024;
constexpr size_t kMostForBlocks = 3 * kKiB;
constexpr size_t kMostForStatistics = 6 * kKiB;
constexpr size_t kPainted = 24 * kKiB;
constexpr uint64_t kPaint = 0x5a5ac3c35a5ac3c3;

using Word = volatile uint64_t;

// --- Measuring ----------------------------------------------------------------------------------

Word* BelowFrame(const void* frame, size_t bytes) {
  return reinterpret_cast<Word*>((reinterpret_cast<uintptr_t>(frame) - bytes) & ~uintptr_t{7});
}

// A leaf: nothing of its own lies that far below its frame.
__attribute__((noinline)) void PaintBelow() {
  constexpr size_t kOwn = 160;
  const void* frame = __builtin_frame_address(0);
  for (Word* word = BelowFrame(frame, kPainted); word < BelowFrame(frame, kOwn); ++word) {
    *word = kPaint;
  }
}

__attribute__((noinline)) size_t UsedBelow(const void* frame) {
  const Word* word = BelowFrame(__builtin_frame_address(0), kPainted);
  // The last words may be those of this frame.
  while (reinterpret_cast<uintptr_t>(word) < reinterpret_cast<uintptr_t>(frame) &&
         *word == kPaint) {
    ++word;
  }
  return reinterpret_cast<uintptr_t>(frame) - reinterpret_cast<uintptr_t>(word);
}

// The deepest that `operation` goes below its caller.
template <typename F>
__attribute__((noinline)) size_t DepthOf(F operation) {
  PaintBelow();
  operation();
  return UsedBelow(__builtin_frame_address(0));
}

// The deepest of all operations of one kind, and which one it was.
class Gauge {
 public:
  Gauge(const char* kind, size_t most) : kind_(kind), most_(most) {}

  template <typename F>
  void Measure(const char* what, F operation) {
    Note(what, DepthOf(operation));
  }
  void Note(const char* what, size_t depth) {
    if (depth <= deepest_) return;
    deepest_ = depth;
    what_ = what;
  }
  bool WithinBound() const {
    fprintf(stderr, "%s: %zu bytes of stack at most (%s), of %zu\n", kind_, deepest_, what_, most_);
    return deepest_ <= most_;
  }

 private:
  const char* kind_;
  const char* what_ = "nothing";
  size_t most_;
  size_t deepest_ = 0;
};

Gauge of_blocks("blocks", kMostForBlocks);
Gauge of_statistics("statistics", kMostForStatistics);

// --- Operations ---------------------------------------------------------------------------------

constexpr size_t kSlots = 20'000;
std::array<std::atomic<void*>, kSlots> slots;

void Keep(size_t slot, void* block) { free(slots[slot].exchange(block)); }

size_t AnySize(Random& random) {
  const size_t kind = random.Below(16);
  if (kind == 0) return random.Below(400'000);
  return random.Below(kind < 4 ? 9000 : 700);
}

// Each thread uses all slots, so that most blocks are freed by another than had them.
void Step(Random& random) {
  const size_t slot = random.Below(kSlots);
  const size_t size = AnySize(random);
  switch (random.Below(8)) {
    case 0:
      return Keep(slot, calloc(1, size));
    case 1:
      return Keep(slot, aligned_alloc(size_t{16} << random.Below(10), size));
    case 2:
      return Keep(slot, realloc(slots[slot].exchange(nullptr), size + 1));
    case 3:
      return ::operator delete(::operator new(size, std::nothrow), size);
    case 4:
      return Keep(slot, nullptr);
    default:
      return Keep(slot, malloc(size));
  }
}

void MoveToCpu(int turn) {
  cpu_set_t usable;
  CPU_ZERO(&usable);
  static const cpu_set_t all = [] {
    cpu_set_t set;
    PROGRAM_CHECK(sched_getaffinity(0, sizeof set, &set) == 0);
    return set;
  }();
  const int count = CPU_COUNT(&all);
  for (int cpu = 0, index = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &all) && index++ == turn % count) CPU_SET(cpu, &usable);
  }
  sched_setaffinity(0, sizeof usable, &usable);
}

void MeasureSteps(Random& random) {
  for (int i = 0; i < 4000; ++i) {
    if (i % 200 == 0) MoveToCpu(i / 200);
    of_blocks.Measure("a mix of all calls", [&random] {
      for (int step = 0; step < 50; ++step) Step(random);
    });
  }
}

// Blocks of many classes and ages, given back at once: lists overflow, spans drain, pages return.
void MeasureSweep() {
  for (std::atomic<void*>& slot : slots) {
    of_blocks.Measure("free of everything", [&slot] { free(slot.exchange(nullptr)); });
  }
}

std::array<void*, 4096> fill;

void GiveUpFill() {
  std::set_new_handler(nullptr);
  for (void*& block : fill) {
    free(block);
    block = nullptr;
  }
}

// Up to the heap's limit, where everything is shed and the new handler is asked in the end.
void MeasureLimit() {
  for (const size_t size : {size_t{200'000}, size_t{300'000}}) {
    bool full = false;
    for (size_t i = 0; i < fill.size() && !full; ++i) {
      of_blocks.Measure("malloc at the limit", [&] { fill[i] = malloc(size); });
      full = fill[i] == nullptr;
    }
    PROGRAM_CHECK(full);
    std::set_new_handler(GiveUpFill);
    of_blocks.Measure("new handler",
                      [size] { ::operator delete(::operator new(size, std::nothrow)); });
  }
}

void MeasureChild() {
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    Random random(77);
    for (int i = 0; i < 300; ++i) of_blocks.Measure("a child of fork", [&] { Step(random); });
    _exit(of_blocks.WithinBound() ? 0 : 1);
  }
  int status = 0;
  PROGRAM_CHECK(waitpid(pid, &status, 0) == pid);
  PROGRAM_CHECK(status == 0);
}

void MeasureStatistics() {
  const int saved_stderr = dup(STDERR_FILENO);
  const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
  dup2(null, STDERR_FILENO);
  close(null);
  of_statistics.Measure("malloc_stats", [] { malloc_stats(); });
  dup2(saved_stderr, STDERR_FILENO);
  close(saved_stderr);
  of_statistics.Measure("mallinfo2", [] { PROGRAM_CHECK(mallinfo2().arena > 0); });
  of_statistics.Measure("malloc_trim", [] { malloc_trim(0); });
  static char text[1 << 16];
  using GetStats = void (*)(char*, int);
  using GetProperty = int (*)(const char*, size_t*);
  const auto stats = reinterpret_cast<GetStats>(dlsym(RTLD_DEFAULT, "MallocExtension_GetStats"));
  const auto property =
      reinterpret_cast<GetProperty>(dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty"));
  PROGRAM_CHECK(stats != nullptr && property != nullptr);
  of_statistics.Measure("GetStats", [stats] { stats(text, sizeof text); });
  of_statistics.Measure("GetNumericProperty", [property] {
    size_t value = 0;
    property("generic.current_allocated_bytes", &value);
  });
  FILE* file = fopen("/dev/null", "w");
  PROGRAM_CHECK(file != nullptr);
  of_statistics.Measure("malloc_info", [file] { malloc_info(0, file); });
  fclose(file);
}

// --- Threads ------------------------------------------------------------------------------------

pthread_t Start(size_t stack_bytes, void* (*body)(void*), void* argument = nullptr) {
  pthread_attr_t attributes;
  PROGRAM_CHECK(pthread_attr_init(&attributes) == 0);
  PROGRAM_CHECK(pthread_attr_setstacksize(&attributes, stack_bytes) == 0);
  pthread_t thread{};
  PROGRAM_CHECK(pthread_create(&thread, &attributes, body, argument) == 0);
  PROGRAM_CHECK(pthread_attr_destroy(&attributes) == 0);
  return thread;
}

void Join(pthread_t thread) { PROGRAM_CHECK(pthread_join(thread, nullptr) == 0); }

// The first call of a thread makes what it owns.
void* BeginLife(void*) {
  of_blocks.Measure("a thread's first malloc", [] { free(malloc(100)); });
  return nullptr;
}

std::atomic<bool> stop{false};

void* StepUntilStopped(void* seed) {
  Random random(reinterpret_cast<uintptr_t>(seed));
  while (!stop.load(std::memory_order_relaxed)) Step(random);
  return nullptr;
}

void* MeasureAll(void*) {
  Random random(1);
  std::array<pthread_t, 2> others{};
  for (size_t i = 0; i < others.size(); ++i) {
    others[i] = Start(256 * kKiB, StepUntilStopped, reinterpret_cast<void*>(i + 2));
  }
  MeasureSteps(random);
  MeasureStatistics();
  stop = true;
  for (const pthread_t other : others) Join(other);
  MeasureSweep();
  MeasureLimit();
  MeasureChild();
  return nullptr;
}

// --- Small stacks, whose ends are guarded -------------------------------------------------------

void UseEverything() {
  Random random(3);
  for (int i = 0; i < 20'000; ++i) Step(random);
  PROGRAM_CHECK(mallinfo2().arena > 0);
}

void* LiveOnSmallStack(void*) {
  UseEverything();
  return nullptr;
}

void Handle(int) { UseEverything(); }

// Of 8 KiB, unless the processor's registers alone need more.
void HandleOnSmallStack() {
  const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const auto registers = static_cast<size_t>(std::max(sysconf(_SC_MINSIGSTKSZ), 0L));
  const size_t bytes = (std::max(8 * kKiB, registers + 5 * kKiB) + page - 1) / page * page;
  auto* guarded = static_cast<char*>(
      mmap(nullptr, page + bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  PROGRAM_CHECK(guarded != MAP_FAILED);
  PROGRAM_CHECK(mprotect(guarded + page, bytes, PROT_READ | PROT_WRITE) == 0);
  const stack_t stack{.ss_sp = guarded + page, .ss_flags = 0, .ss_size = bytes};
  PROGRAM_CHECK(sigaltstack(&stack, nullptr) == 0);
  struct sigaction action = {};
  action.sa_handler = Handle;
  action.sa_flags = SA_ONSTACK;
  PROGRAM_CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
  PROGRAM_CHECK(raise(SIGUSR1) == 0);
}

int Run() {
  for (int i = 0; i < 30; ++i) Join(Start(256 * kKiB, BeginLife));
  Join(Start(256 * kKiB, MeasureAll));
  const bool blocks = of_blocks.WithinBound();
  const bool statistics = of_statistics.WithinBound();
  if (!blocks || !statistics) return 1;
  Join(Start(static_cast<size_t>(sysconf(_SC_THREAD_STACK_MIN)), LiveOnSmallStack));
  HandleOnSmallStack();
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main() { return tcmalloc::testing::Run(); }
