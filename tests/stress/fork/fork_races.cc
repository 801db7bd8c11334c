// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Forks that meet each other, and forks that meet libc's locks: none may wait for ever.
// Usage: fork_races [variant], all by default.

#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <new>
#include <thread>
#include <vector>

#include "stress/fork/storm.h"
#include "stress/fork/variants.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

// Calls in_child() in a child, and waits for it.
template <typename F>
void ForkAndAwait(F in_child) {
  const pid_t pid = fork();
  PROGRAM_CHECK(pid >= 0);
  if (pid == 0) {
    in_child();
    _exit(0);
  }
  AwaitChild(pid);
}

// The child uses the heap though its thread was interrupted in it, small and large.
void AllocateInChild() {
  signal(SIGUSR1, SIG_IGN);
  alarm(kChildAlarmSeconds);
  for (size_t i = 0; i < 200; ++i) {
    void* block = malloc(1 + i * 7919 % 60'000);
    PROGRAM_CHECK(block != nullptr);
    memset(block, 1, 1);
    if (i % 2 == 0) free(block);
  }
  for (int i = 0; i < 3; ++i) {
    void* block = malloc(500'000);
    PROGRAM_CHECK(block != nullptr);
    free(realloc(block, 900'000));
  }
}

void ForkInHandler(int /*signal*/) {
  const int saved_errno = errno;
  ForkAndAwait(AllocateInChild);
  handler_forks.fetch_add(1);
  errno = saved_errno;
}

void ForkQuicklyInHandler(int /*signal*/) {
  const int saved_errno = errno;
  ForkAndAwait([] {});
  handler_forks.fetch_add(1);
  errno = saved_errno;
}

// Sends the thread a signal, calls meanwhile(), and waits until the thread's handler has run.
template <typename F>
void InterruptThread(std::thread& thread, F meanwhile) {
  const int before = handler_forks.load();
  PROGRAM_CHECK(pthread_kill(thread.native_handle(), SIGUSR1) == 0);
  meanwhile();
  while (handler_forks.load() == before) usleep(100);
}

// A thread that goes from one slow path to the next.
class LargeAllocator {
 public:
  LargeAllocator() = default;
  LargeAllocator(const LargeAllocator&) = delete;
  LargeAllocator& operator=(const LargeAllocator&) = delete;
  ~LargeAllocator() {
    stop_.store(true, std::memory_order_relaxed);
    thread_.join();
  }

  template <typename F>
  void Interrupt(F meanwhile) {
    InterruptThread(thread_, meanwhile);
  }
  void Interrupt() {
    Interrupt([] {});
  }

 private:
  void Run() {
    Random random(5);
    while (!stop_.load(std::memory_order_relaxed)) free(malloc(300'000 + random.Below(1'000'000)));
  }

  std::atomic<bool> stop_{false};
  std::thread thread_{[this] { Run(); }};
};

// Threads that allocate until they are told to stop; any of them can be interrupted.
class Allocators {
 public:
  explicit Allocators(int count) {
    for (int i = 0; i < count; ++i) {
      threads_.emplace_back([this, i] {
        BlockSet<64> blocks(static_cast<uint64_t>(i));
        while (!stop_.load(std::memory_order_relaxed)) {
          blocks.Steps(8);
          free(malloc(300'000 + static_cast<size_t>(i) * 1000));
        }
        blocks.FreeAll();
      });
    }
  }
  Allocators(const Allocators&) = delete;
  Allocators& operator=(const Allocators&) = delete;
  ~Allocators() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
  }

  void Interrupt(size_t thread) {
    InterruptThread(threads_[thread], [] {});
  }
  size_t count() const { return threads_.size(); }

 private:
  std::atomic<bool> stop_{false};
  std::vector<std::thread> threads_;
};

// Makes two forks meet: each waits for the other one after all of the allocator's handlers before
// the system call, so that neither has ended when the other one begins.
class Meeting {
 public:
  // Registers its handler before the allocator does. Such a handler is the last one to run.
  static void Register() { pthread_atfork(Come, nullptr, nullptr); }

  static void Begin() { awaited_.store(2); }
  // Returns false if nobody came in time.
  static bool AwaitFirst() { return AwaitAtMost(1); }
  static int count() { return count_.load(); }

 private:
  static void Come() {
    const int saved_errno = errno;
    int awaited = awaited_.load();
    while (awaited > 0 && !awaited_.compare_exchange_weak(awaited, awaited - 1)) {
    }
    if (awaited == 1) count_.fetch_add(1);
    if (awaited == 2 && !AwaitAtMost(0)) awaited_.store(0);
    errno = saved_errno;
  }

  // The other fork cannot come while this one keeps it out, so the time is bounded.
  static bool AwaitAtMost(int awaited) {
    for (int i = 0; i < 1000 && awaited_.load() > awaited; ++i) usleep(100);
    return awaited_.load() <= awaited;
  }

  static inline std::atomic<int> awaited_{0};
  static inline std::atomic<int> count_{0};
};

// Blocks of each kind, which a thread frees while another one forks.
class FreesDuringFork {
 public:
  // Registers its handler as Meeting does.
  static void Register() { pthread_atfork(AwaitFrees, nullptr, nullptr); }

  FreesDuringFork() {
    void* aligned = nullptr;
    PROGRAM_CHECK(posix_memalign(&aligned, kLarge, 100) == 0);
    frees_.push_back([aligned] { free(aligned); });
    for (const std::align_val_t alignment : {std::align_val_t{32}, std::align_val_t{kLarge}}) {
      Add(::operator new(100, alignment),
          [alignment](void* block) { ::operator delete(block, alignment); });
      Add(::operator new(100, alignment),
          [alignment](void* block) { ::operator delete(block, 100, alignment); });
      Add(::operator new[](100, alignment),
          [alignment](void* block) { ::operator delete[](block, alignment); });
    }
    Add(::operator new(100), [](void* block) { ::operator delete(block, size_t{100}); });
    Add(::operator new[](100), [](void* block) { ::operator delete[](block); });
    Add(malloc(100), free);
    awaited_.store(true);
  }
  FreesDuringFork(const FreesDuringFork&) = delete;
  FreesDuringFork& operator=(const FreesDuringFork&) = delete;
  ~FreesDuringFork() { thread_.join(); }

 private:
  static constexpr size_t kLarge = 4096;

  template <typename F>
  void Add(void* block, F f) {
    PROGRAM_CHECK(block != nullptr);
    frees_.push_back([block, f] { f(block); });
  }
  void Run() {
    while (!forking_.load()) usleep(50);
    for (const std::function<void()>& f : frees_) f();
    forking_.store(false);
  }

  static void AwaitFrees() {
    if (!awaited_.exchange(false)) return;
    forking_.store(true);
    while (forking_.load()) usleep(50);
  }

  static inline std::atomic<bool> awaited_{false};
  static inline std::atomic<bool> forking_{false};
  std::vector<std::function<void()>> frees_;
  std::thread thread_{[this] { Run(); }};
};

void RegisterHandlers(int /*argc*/, char** /*argv*/, char** /*environment*/) {
  Meeting::Register();
  FreesDuringFork::Register();
}
__attribute__((section(".preinit_array"),
               used)) void (*const register_handlers)(int, char**, char**) = RegisterHandlers;

// A thread that forks in plain code, again and again.
class PlainForker {
 public:
  PlainForker() = default;
  PlainForker(const PlainForker&) = delete;
  PlainForker& operator=(const PlainForker&) = delete;
  ~PlainForker() {
    stop_.store(true);
    thread_.join();
  }

  void Pause() { paused_.store(true); }
  void Continue() { paused_.store(false); }

 private:
  void Run() {
    while (!stop_.load()) {
      if (paused_.load()) {
        usleep(50);
        continue;
      }
      ForkAndAwait([] {});
      free(malloc(100'000));
    }
  }

  std::atomic<bool> paused_{false};
  std::atomic<bool> stop_{false};
  std::thread thread_{[this] { Run(); }};
};

// One thread forks in plain code while another one's handler forks, mostly in the middle of its
// slow path: that one does nothing but take memory from the page heap. There is so much to copy
// that most signals arrive while the other thread forks. Two of three rounds do not leave that to
// chance: the plain fork waits for the handler's, or the other way round.
void PlainForksAndForksInHandlers() {
  constexpr int kRounds = 50;
  const std::vector<char> to_copy(size_t{48} << 20, 1);
  SetHandler(ForkQuicklyInHandler);
  LargeAllocator allocator;
  PlainForker forker;
  for (int i = 0; i < kRounds; ++i) {
    allocator.Interrupt();

    Meeting::Begin();
    Meeting::AwaitFirst();
    allocator.Interrupt();

    forker.Pause();
    Meeting::Begin();
    allocator.Interrupt([&forker] {
      Meeting::AwaitFirst();
      forker.Continue();
    });
  }
  printf("%d of %d meetings\n", Meeting::count(), 2 * kRounds);
  PROGRAM_CHECK(Meeting::count() >= kRounds);
}

void ForksInHandlers() {
  constexpr size_t kForks = 60;
  SetHandler(ForkInHandler);
  Allocators allocators(6);
  for (size_t i = 0; i < kForks; ++i) allocators.Interrupt(i % allocators.count());
}

// A handler forks while its own thread is in fork. Afterwards malloc serves as much as before. Has
// to come before the variants with threads: in a process with more than one libc itself waits for
// its own lock.
void ForksInsideForks() {
  constexpr int kForks = 200;
  SetHandler(ForkQuicklyInHandler);
  struct sigaction action = {};
  action.sa_handler = ForkQuicklyInHandler;
  PROGRAM_CHECK(sigaction(SIGALRM, &action, nullptr) == 0);
  for (int i = 0; i < kForks; ++i) {
    const itimerval once = {{0, 0}, {0, 20 + i * 7 % 900}};
    const itimerval never = {};
    setitimer(ITIMER_REAL, &once, nullptr);
    const pid_t pid = fork();
    PROGRAM_CHECK(pid >= 0);
    if (pid == 0) _exit(0);
    setitimer(ITIMER_REAL, &never, nullptr);
    AwaitChild(pid);
  }
  signal(SIGALRM, SIG_DFL);
  std::vector<void*> blocks(4000);
  for (void*& block : blocks) {
    block = malloc(10'000);
    PROGRAM_CHECK(block != nullptr);
  }
  for (void* block : blocks) free(block);
}

// What was freed where no lock may be taken is given back later, in the parent and in the child,
// and is no mistake then either.
void FreesWhileAnotherThreadForks() {
  for (int i = 0; i < 20; ++i) {
    const FreesDuringFork frees;
    ForkAndAwait(AllocateInChild);
    free(malloc(100));
  }
}

// libc's fork takes its lock of streams after our handler; other threads hold that one, or a
// stream's, while they allocate.
void ForksAndStreams() {
  constexpr int kForks = 40;
  std::atomic<bool> stop{false};
  std::vector<std::thread> threads;
  threads.emplace_back([&stop] {
    // Without the pause this thread has libc's lock nearly all the time where there are many CPUs,
    // and fork waits for it for minutes, with libc's own malloc as well.
    while (!stop.load()) {
      fflush(nullptr);
      usleep(100);
    }
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&stop] {
      FILE* file = tmpfile();
      PROGRAM_CHECK(file != nullptr);
      const std::vector<char> text(40'000, 'x');
      PROGRAM_CHECK(fwrite(text.data(), 1, text.size(), file) == text.size());
      while (!stop.load()) {
        rewind(file);
        char* line = nullptr;
        size_t size = 0;
        PROGRAM_CHECK(getdelim(&line, &size, 0, file) > 0);
        free(line);
      }
      fclose(file);
    });
  }
  for (int i = 0; i < kForks; ++i) ForkAndAwait([] {});
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
}

constexpr Variant kVariants[] = {
    {"inside_fork", ForksInsideForks}, {"plain_and_handler", PlainForksAndForksInHandlers},
    {"handlers", ForksInHandlers},     {"frees", FreesWhileAnotherThreadForks},
    {"streams", ForksAndStreams},
};

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  using namespace tcmalloc::testing;
  return RunVariants(argc, argv, "fork_races", kVariants);
}
