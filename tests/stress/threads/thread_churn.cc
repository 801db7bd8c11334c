// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that come and go, in every way that a thread can end, and that allocate until the last
// destructor has run. What the allocator counts as in use, by the program or by itself, must not
// grow with the number of threads that have been: an object that was lost counts as the program's,
// and a freed one that waits in the queue of the debug mode does not.
// Usage: thread_churn [threads]

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

#include "stress/memory/figures.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kWave = 20;
constexpr int kAllocatingInWave = kWave / 5 * 4;
// Until every thread of a wave has what it needs.
constexpr int kWarmUpThreads = 2000;
// Eight bytes for each of ten thousand threads would be more. Resident memory would not do: by how
// much the caches and the lists of free spans hold at their peak it says how the scheduler let
// threads overlap.
constexpr size_t kMaxGrowth = size_t{64} * 1024;
// The scheduler may once bring about more threads at a time than before, whose records stay; a leak
// grows in every round.
constexpr int kRounds = 3;
// Small enough that fragmentation by random large blocks does not hide a leak.
constexpr size_t kMaxSize = 4096;
// More than the 32 keys whose values fit into libc's thread descriptor: for the rest
// pthread_setspecific allocates, and libc frees that block after the last destructor.
constexpr size_t kKeys = 40;
constexpr int kDestructorRounds = 4;  // PTHREAD_DESTRUCTOR_ITERATIONS of glibc

int threads_wanted = 10'000;

std::array<pthread_key_t, kKeys> keys;
pthread_key_t rounds_key;
// All allocating threads of a wave hold their blocks at the same time. Otherwise the scheduler
// decides how many do, and the peak, which stays resident, grows with the number of waves.
pthread_barrier_t wave_is_full;
std::atomic<uint64_t> threads_ended{0};
std::atomic<uint64_t> key_destructors{0};
std::atomic<uint64_t> thread_local_destructors{0};
std::atomic<uint64_t> cleanups{0};
Progress* progress = nullptr;

// Blocks that one thread leaves for another to free.
std::array<std::atomic<Block*>, 64> mailbox{};

void ExchangeBlock(Random& random) {
  auto* block = new Block;
  block->Allocate(random);
  Block* other = mailbox[random.Below(mailbox.size())].exchange(block, std::memory_order_acq_rel);
  if (other == nullptr) return;
  other->Free();
  delete other;
}

void EmptyMailbox() {
  for (std::atomic<Block*>& slot : mailbox) {
    Block* block = slot.exchange(nullptr);
    if (block == nullptr) continue;
    block->Free();
    delete block;
  }
}

void AllocateALittle(uint64_t seed) {
  BlockSet<8> blocks(seed, kMaxSize);
  blocks.Steps(16);
  blocks.FreeAll();
}

// --- Destructors ------------------------------------------------------------------------------

void DestroyKeyValue(void* value) {
  AllocateALittle(reinterpret_cast<uintptr_t>(value) >> 4);
  free(value);
  key_destructors.fetch_add(1, std::memory_order_relaxed);
}

struct Rounds {
  int left;
};

// Sets its key anew in each round, so that it runs in all of them, after the allocator's own
// destructor as well as before it.
void DestroyRounds(void* value) {
  auto* rounds = static_cast<Rounds*>(value);
  const int left = rounds->left - 1;
  AllocateALittle(static_cast<uint64_t>(left));
  delete rounds;
  key_destructors.fetch_add(1, std::memory_order_relaxed);
  if (left == 0) return;
  PROGRAM_CHECK(pthread_setspecific(rounds_key, new Rounds{left}) == 0);
}

class ThreadLocalOwner {
 public:
  ThreadLocalOwner() : block_(malloc(100)) {}
  ThreadLocalOwner(const ThreadLocalOwner&) = delete;
  ThreadLocalOwner& operator=(const ThreadLocalOwner&) = delete;
  ~ThreadLocalOwner() {
    free(block_);
    AllocateALittle(5);
    thread_local_destructors.fetch_add(1, std::memory_order_relaxed);
  }
  void Touch() { block_ = realloc(block_, 200); }

 private:
  void* block_;
};

thread_local ThreadLocalOwner thread_local_owner;

// --- The life of a thread -----------------------------------------------------------------------

void SetKeys() {
  for (const pthread_key_t key : keys) {
    PROGRAM_CHECK(pthread_setspecific(key, malloc(24)) == 0);
  }
  PROGRAM_CHECK(pthread_setspecific(rounds_key, new Rounds{kDestructorRounds}) == 0);
}

void Live(uint64_t seed) {
  Random random(seed, kMaxSize);
  thread_local_owner.Touch();
  SetKeys();
  BlockSet<32> blocks(seed, kMaxSize);
  blocks.Steps(60);
  for (int i = 0; i < 4; ++i) ExchangeBlock(random);
  pthread_barrier_wait(&wave_is_full);
  blocks.FreeAll();
  threads_ended.fetch_add(1);
}

void* Return(void* seed) {
  Live(reinterpret_cast<uintptr_t>(seed));
  return nullptr;
}

void* CallPthreadExit(void* seed) {
  Live(reinterpret_cast<uintptr_t>(seed));
  pthread_exit(nullptr);
}

void Cleanup(void* block) {
  free(block);
  AllocateALittle(6);
  cleanups.fetch_add(1, std::memory_order_relaxed);
}

void* WaitToBeCancelled(void* seed) {
  int old_state = 0;
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &old_state);
  Live(reinterpret_cast<uintptr_t>(seed));
  pthread_cleanup_push(Cleanup, malloc(1000));
  pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old_state);
  for (;;) pause();
  pthread_cleanup_pop(1);
  return nullptr;
}

// Frees only: a thread whose first call into the allocator is free.
void* FreeForeignBlock(void* block) {
  free(block);
  threads_ended.fetch_add(1);
  return nullptr;
}

// Stacks are small so that libc can keep all of a wave for the next one.
pthread_t StartThread(void* (*function)(void*), void* argument, int detach_state) {
  constexpr size_t kStackBytes = size_t{128} * 1024;
  pthread_attr_t attributes;
  PROGRAM_CHECK(pthread_attr_init(&attributes) == 0);
  PROGRAM_CHECK(pthread_attr_setstacksize(&attributes, kStackBytes) == 0);
  PROGRAM_CHECK(pthread_attr_setdetachstate(&attributes, detach_state) == 0);
  pthread_t thread{};
  PROGRAM_CHECK(pthread_create(&thread, &attributes, function, argument) == 0);
  PROGRAM_CHECK(pthread_attr_destroy(&attributes) == 0);
  return thread;
}

int CountTasks() {
  DIR* tasks = opendir("/proc/self/task");
  PROGRAM_CHECK(tasks != nullptr);
  int count = 0;
  while (readdir(tasks) != nullptr) ++count;
  closedir(tasks);
  return count - 2;  // "." and ".."
}

// Nothing announces the end of a detached thread, so ask the kernel until it is gone.
void AwaitDetachedThreads() {
  while (CountTasks() > 1) sched_yield();
}

// Every wave does the same, so that its peak is the same.
void RunWave() {
  std::array<pthread_t, kWave> threads{};
  const auto seed_of = [](int i) { return reinterpret_cast<void*>(static_cast<uintptr_t>(i) + 1); };
  for (int i = 0; i < kWave; ++i) {
    pthread_t& thread = threads[static_cast<size_t>(i)];
    switch (i % 5) {
      case 0:
        thread = StartThread(Return, seed_of(i), PTHREAD_CREATE_JOINABLE);
        break;
      case 1:
        thread = StartThread(CallPthreadExit, seed_of(i), PTHREAD_CREATE_JOINABLE);
        break;
      case 2:
        thread = StartThread(WaitToBeCancelled, seed_of(i), PTHREAD_CREATE_JOINABLE);
        break;
      case 3:
        thread = StartThread(FreeForeignBlock, malloc(64), PTHREAD_CREATE_JOINABLE);
        break;
      case 4:
        StartThread(Return, seed_of(i), PTHREAD_CREATE_DETACHED);
        break;
    }
  }
  for (int i = 0; i < kWave; ++i) {
    const pthread_t thread = threads[static_cast<size_t>(i)];
    if (i % 5 == 4) continue;
    if (i % 5 == 2) PROGRAM_CHECK(pthread_cancel(thread) == 0);
    PROGRAM_CHECK(pthread_join(thread, nullptr) == 0);
    progress->Advance();
  }
  AwaitDetachedThreads();
}

void CreateKeys() {
  PROGRAM_CHECK(pthread_key_create(&rounds_key, DestroyRounds) == 0);
  for (pthread_key_t& key : keys) PROGRAM_CHECK(pthread_key_create(&key, DestroyKeyValue) == 0);
}

void CheckDestructorsRan() {
  const uint64_t threads = threads_ended.load();
  const uint64_t with_keys = threads / kWave * kAllocatingInWave;
  PROGRAM_CHECK(key_destructors.load() == with_keys * (kKeys + kDestructorRounds));
  PROGRAM_CHECK(thread_local_destructors.load() == with_keys);
  PROGRAM_CHECK(cleanups.load() == threads / 5);
}

void RunWaves(int count) {
  for (int i = 0; i < count; ++i) RunWave();
}

size_t UsedBytes() {
  EmptyMailbox();
  return Property("generic.current_allocated_bytes") + Figure("metadata");
}

bool GrewInRound() {
  const size_t before = UsedBytes();
  RunWaves(threads_wanted / kWave);
  const size_t after = UsedBytes();
  printf("%d more threads: %zu bytes before, %zu after\n", threads_wanted, before, after);
  return after > before + kMaxGrowth;
}

int Body(Progress& shared_progress) {
  progress = &shared_progress;
  CreateKeys();
  PROGRAM_CHECK(pthread_barrier_init(&wave_is_full, nullptr, kAllocatingInWave) == 0);
  RunWaves(kWarmUpThreads / kWave);
  bool grew = true;
  for (int round = 0; round < kRounds && grew; ++round) grew = GrewInRound();
  EmptyMailbox();
  CheckDestructorsRan();
  if (!grew) return 0;
  fprintf(stderr, "what is in use may grow by %zu KiB only\n", kMaxGrowth / 1024);
  return 1;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc > 1) tcmalloc::testing::threads_wanted = atoi(argv[1]);
  return tcmalloc::testing::RunSupervised("thread_churn", tcmalloc::testing::Body);
}
