// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Programs whose only pointers lie where few programs have them.

#include <gperftools/malloc_hook_c.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <coroutine>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "integration/leaks/corpus.h"

namespace {

std::atomic<bool> parked{false};

// Sleeps until the process ends, and cannot be asked where its stack and its registers are.
[[noreturn]] void ParkDeaf() {
  sigset_t all;
  ::sigfillset(&all);
  ::pthread_sigmask(SIG_BLOCK, &all, nullptr);
  parked = true;
  while (true) ::pause();
}

void StartAndAwait(void* (*run)(void*), const pthread_attr_t* attributes = nullptr) {
  pthread_t thread;
  if (::pthread_create(&thread, attributes, run, nullptr) != 0) std::abort();
  while (!parked) ::sched_yield();
}

// Stores a new block that holds the address of another one.
void* NewPair(size_t bytes) {
  auto* outer = static_cast<void**>(std::malloc(bytes));
  *outer = std::malloc(bytes);
  return outer;
}

}  // namespace

CLEAN(keys_of_parked_thread) {
  static pthread_key_t keys[100];
  for (pthread_key_t& key : keys) ::pthread_key_create(&key, nullptr);
  StartAndAwait([](void*) -> void* {
    for (const pthread_key_t key : keys) ::pthread_setspecific(key, NewPair(40));
    ClearStack();
    ParkDeaf();
  });
}

// libc's list of the robust locks that a thread holds leads into the block.
CLEAN(held_robust_lock) {
  StartAndAwait([](void*) -> void* {
    struct Guarded {
      pthread_mutex_t lock;
      void* other;
    };
    auto* guarded = static_cast<Guarded*>(std::malloc(sizeof(Guarded)));
    pthread_mutexattr_t attributes;
    ::pthread_mutexattr_init(&attributes);
    ::pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
    ::pthread_mutex_init(&guarded->lock, &attributes);
    guarded->other = std::malloc(60);
    ::pthread_mutex_lock(&guarded->lock);
    guarded = nullptr;
    ClearStack();
    ParkDeaf();
  });
}

namespace {

constexpr size_t kStackBytes = size_t{256} << 10;
[[gnu::used]] void* stack_of_thread = nullptr;

// Starts a thread whose stack is a block. The stack alone leads to another one.
void RunOnBlock() {
  stack_of_thread = std::aligned_alloc(4096, kStackBytes);
  pthread_attr_t attributes;
  ::pthread_attr_init(&attributes);
  ::pthread_attr_setstack(&attributes, stack_of_thread, kStackBytes);
  StartAndAwait(
      [](void*) -> void* {
        void* volatile on_stack = std::malloc(70);
        asm volatile("" : : "r"(on_stack) : "memory");
        ParkDeaf();
      },
      &attributes);
}

}  // namespace

CLEAN(block_as_stack_of_thread) { RunOnBlock(); }

// Lie below the stack, in the same mapping, and lead to themselves. They are small, because the
// rest of an address on the stack, of which a number took the lower half, may lead to a large one.
constexpr size_t kBesideStack = 2;
constexpr size_t kBytesBesideStack = kBesideStack * 100;
SITE void site_below_stack() {
  for (size_t i = 0; i < kBesideStack; ++i) {
    auto* block = static_cast<void**>(std::malloc(kBytesBesideStack / kBesideStack));
    *block = block;
  }
}
LEAK(beside_block_as_stack_of_thread, kBytesBesideStack, kBesideStack, site_below_stack) {
  site_below_stack();
  RunOnBlock();
}

CLEAN(system_v_shared_memory) {
  const int id = ::shmget(IPC_PRIVATE, 1 << 16, IPC_CREAT | 0600);
  // Not every container has it.
  if (id < 0) return;
  [[gnu::used]] static void** memory = nullptr;
  memory = static_cast<void**>(::shmat(id, nullptr, 0));
  ::shmctl(id, IPC_RMID, nullptr);
  memory[100] = NewPair(80);
}

namespace {

[[gnu::used]] void* kept = nullptr;

// Lets a hook run, which does something with what was kept.
void RunAsHook(MallocHook_NewHook hook) {
  if (MallocHook_AddNewHook(hook) == 0) std::abort();
  std::free(Opaque(std::malloc(1)));
  if (MallocHook_RemoveNewHook(hook) == 0) std::abort();
  ClearStack();
}

}  // namespace

CLEAN(block_freed_in_a_hook) {
  kept = std::malloc(100);
  RunAsHook([](const void*, size_t) {
    std::free(kept);
    kept = nullptr;
  });
}

CLEAN(block_reached_from_a_block_of_a_hook) {
  kept = std::malloc(100);
  RunAsHook([](const void*, size_t) {
    auto** outer = static_cast<void**>(std::malloc(200));
    *outer = kept;
    kept = outer;
  });
}

SITE void site_in_hook(const void*, size_t) { static_cast<void>(Opaque(std::malloc(300))); }
LEAK(block_of_a_hook, 300, 1, site_in_hook) { RunAsHook(site_in_hook); }

namespace {

// Lets the handler interrupt the allocator, and the recording of blocks as well.
void Interrupt(void (*handler)(int)) {
  constexpr size_t kBlocks = 100'000;
  struct sigaction action = {};
  action.sa_handler = handler;
  ::sigaction(SIGALRM, &action, nullptr);
  itimerval often = {{0, 100}, {0, 100}};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  for (size_t i = 0; i < kBlocks; ++i) std::free(Opaque(std::malloc(i % 300)));
  often = {};
  ::setitimer(ITIMER_REAL, &often, nullptr);
  ClearStack();
}

}  // namespace

CLEAN(blocks_freed_by_a_handler) {
  Interrupt([](int) {
    void* next = std::malloc(30);
    std::free(kept);
    kept = next;
  });
}

CLEAN(list_of_a_handler) {
  Interrupt([](int) {
    auto** next = static_cast<void**>(std::malloc(50));
    *next = kept;
    kept = next;
  });
}

CLEAN(memory_of_the_program_break) {
  constexpr intptr_t kBytes = intptr_t{1} << 20;
  [[gnu::used]] static void** memory = nullptr;
  void* first = ::sbrk(kBytes);
  // Not every system has it.
  if (first == reinterpret_cast<void*>(-1)) return;
  memory = static_cast<void**>(::sbrk(kBytes));
  memory[5000] = NewPair(90);
}

SITE void site_beyond_program_break() {
  if (::sbrk(1 << 20) == reinterpret_cast<void*>(-1)) {
    static_cast<void>(Opaque(std::malloc(60)));
    return;
  }
  auto** memory = static_cast<void**>(::sbrk(1 << 20));
  memory[5000] = std::malloc(60);
  ::sbrk(-(1 << 20));
}
LEAK(beyond_the_program_break, 60, 1, site_beyond_program_break) { site_beyond_program_break(); }

CLEAN(file_in_memory_mapped_by_system_call) {
  constexpr size_t kBytes = size_t{1} << 20;
  const int file = ::memfd_create("leaks", 0);
  if (file < 0 || ::ftruncate(file, kBytes) != 0) std::abort();
  [[gnu::used]] static char* memory = nullptr;
  memory = reinterpret_cast<char*>(
      ::syscall(SYS_mmap, nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0));
  ::close(file);
  reinterpret_cast<void**>(memory)[5000] = NewPair(90);
  memory += kBytes / 2;
}

// More than the checker could name one by one, beside each other and apart.
CLEAN(twenty_thousand_mappings) {
  constexpr size_t kMappings = 20'000;
  constexpr size_t kPage = 4096;
  [[gnu::used]] static void*** mappings = nullptr;
  mappings = static_cast<void***>(std::malloc(kMappings * sizeof(void**)));
  for (size_t i = 0; i < kMappings; ++i) {
    // The lower page of each pair is given back.
    void* memory =
        ::mmap(nullptr, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    mappings[i] = reinterpret_cast<void**>(static_cast<char*>(memory) + kPage);
    *mappings[i] = std::malloc(8);
    if (i % 2 == 0) ::munmap(memory, kPage);
  }
}

CLEAN(children_of_vfork) {
  [[gnu::used]] static void* kept = nullptr;
  kept = NewPair(100);
  for (int i = 0; i < 4; ++i) {
    const pid_t child = ::vfork();
    if (child == 0) ::_exit(i);
    int status = 0;
    ::waitpid(child, &status, 0);
  }
}

namespace {

struct FailingTask {
  struct promise_type {
    std::exception_ptr failure;

    FailingTask get_return_object() {
      return {std::coroutine_handle<promise_type>::from_promise(*this)};
    }
    std::suspend_always initial_suspend() { return {}; }
    std::suspend_always final_suspend() noexcept { return {}; }
    void return_void() {}
    void unhandled_exception() { failure = std::current_exception(); }
  };
  std::coroutine_handle<promise_type> handle;
};

FailingTask Fail() {
  const std::vector<std::string> local(20, std::string(100, 'f'));
  co_await std::suspend_always{};
  throw std::runtime_error(local[3]);
}

[[gnu::used]] FailingTask failed;

}  // namespace

// The frame keeps what was thrown. Its local variables are gone.
CLEAN(exception_in_coroutine_frame) {
  failed = Fail();
  failed.handle.resume();
  failed.handle.resume();
}

__attribute__((noinline)) FailingTask site_failing_coroutine() { return Fail(); }
LEAK(failed_coroutine_that_is_dropped, 0, 0, site_failing_coroutine) { site_failing_coroutine(); }

namespace {

struct Base {
  virtual ~Base() = default;
};
struct Large : Base {
  char data[4000];
};

}  // namespace

// The address of a member far inside leads to nothing, unless the variable for that says so.
SITE void site_member() {
  [[gnu::used]] static char* member = nullptr;
  auto* object = Opaque(new Large);
  member = &object->data[3000];
}
LEAK(address_of_far_member, sizeof(Large), 1, site_member) { site_member(); }
