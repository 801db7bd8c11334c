// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/handlers.h"

#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdlib>

#include "stress/signals/extension.h"
#include "stress/signals/ledger.h"
#include "stress/signals/stepper.h"

namespace tcmalloc::testing {
namespace {

void* Allocate(size_t size) { return ledger.Add(std::malloc(size), size); }
void Free(void* block) { std::free(ledger.Remove(block)); }

// Bounds what a handler may get where it interrupts the slow path.
constexpr size_t kAlwaysThere = 65536;

template <size_t kCount>
void InReverse(const size_t (&sizes)[kCount]) {
  void* blocks[kCount];
  for (size_t i = 0; i < kCount; ++i) {
    blocks[i] = std::malloc(sizes[i]);
    if (blocks[i] != nullptr || sizes[i] <= kAlwaysThere) ledger.Add(blocks[i], sizes[i]);
  }
  for (size_t i = kCount; i > 0; --i) {
    if (blocks[i - 1] != nullptr) Free(blocks[i - 1]);
  }
}

void Nothing() {}
void PairsSmall() { InReverse({48, 8, 48, 200}); }
void PairsLarge() { InReverse({20000, 60000, 40000}); }
void PairsHuge() { InReverse({300000, 400000}); }
void PairsDraining() { InReverse({48, 2000, 20000, 2000, 48}); }
void PairsDrainingTwice() {
  PairsDraining();
  PairsDraining();
}

void InOrder() {
  void* blocks[3];
  for (void*& block : blocks) block = Allocate(48);
  for (void* block : blocks) Free(block);
}

// Bounds the blocks that are kept, because a handler in the slow path lives off a small reserve.
constexpr size_t kMostKept = 64;
std::array<void*, kMostKept> kept;
size_t kept_count = 0;

void Keep(size_t size) {
  if (kept_count == kMostKept) return;
  void* block = std::malloc(size);
  if (block != nullptr) kept[kept_count++] = ledger.Add(block, size);
}
void KeepSmall() { Keep(48); }
void KeepMedium() {
  if (kept_count % 8 == 0) Keep(20000);
  Keep(96);
}

std::array<void*, 256> stock;
size_t stock_count = 0;

void FreeOlder() {
  if (stock_count > 0) Free(stock[--stock_count]);
}

void Fork() {
  const pid_t child = ::fork();
  if (child == 0) {
    InReverse({48, 48, 200, 20000, 300000});
    ::_exit(kGood);
  }
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != kGood) EndWith(kChild);
}

void Release() {
  Extension::ReleaseFreeMemory();
  PairsSmall();
}

std::atomic<uint64_t> hook_calls = 0;
void OnNew(const void*, size_t) { hook_calls.fetch_add(1, std::memory_order_relaxed); }
void AddHookInBetween() {
  Extension::AddHook(OnNew);
  PairsSmall();
  Extension::RemoveHook(OnNew);
}
void LeaveHook() {
  Extension::RemoveHook(OnNew);
  PairsSmall();
  Extension::AddHook(OnNew);
}

// The interrupted thread may hold a lock that the others need, so nobody waits for them long.
template <typename F>
void WaitAWhile(F done) {
  for (int i = 0; i < 200 && !done(); ++i) ::sched_yield();
}

void StartThread(void* (*run)(void*)) {
  pthread_t thread;
  if (::pthread_create(&thread, nullptr, run, nullptr) != 0) EndWith(kNoMemory);
  ::pthread_detach(thread);
}

// A thread that gives memory back when it is told to.
sem_t release_is_wanted;
std::atomic<uint64_t> wanted_releases = 0;
std::atomic<uint64_t> releases = 0;
bool has_helper = false;

void* ReleaseWhenTold(void*) {
  for (;;) {
    while (::sem_wait(&release_is_wanted) != 0) {
    }
    Extension::ReleaseFreeMemory();
    releases.fetch_add(1);
  }
}

void ReleaseElsewhere() {
  if (!has_helper) {
    has_helper = true;
    ::sem_init(&release_is_wanted, 0, 0);
    StartThread(ReleaseWhenTold);
  }
  const uint64_t wanted = wanted_releases.fetch_add(1) + 1;
  ::sem_post(&release_is_wanted);
  WaitAWhile([=] { return releases >= wanted; });
  PairsSmall();
}

// Threads that allocate, and so make the allocator turn to the caches of CPUs by their number: with
// one usable CPU when there are more than sixteen.
constexpr int kCrowd = 20;
std::atomic<int> attending = 0;
std::atomic<int> crowd = 0;  // of threads that live
std::atomic<bool> dismissed = true;

void* Attend(void*) {
  std::free(std::malloc(48));
  attending.fetch_add(1);
  // Asleep, because a crowd that looks by itself would take most of the one CPU.
  dismissed.wait(false);
  // By the slow paths that the thread's record names.
  std::free(std::malloc(48));
  std::free(std::malloc(300000));
  attending.fetch_sub(1);
  crowd.fetch_sub(1);
  return nullptr;
}

void Gather() {
  dismissed = false;
  for (int i = 0; i < kCrowd; ++i) {
    crowd.fetch_add(1);
    StartThread(Attend);
  }
  WaitAWhile([] { return attending >= kCrowd; });
}
void Dismiss() {
  dismissed = true;
  dismissed.notify_all();
  WaitAWhile([] { return crowd == 0; });
}

void Turn() {
  dismissed ? Gather() : Dismiss();
  PairsSmall();
}
void TurnTwice() {
  Turn();
  Turn();
}

constexpr Handler kHandlers[] = {
    {"nothing", Nothing},
    {"pairs of small blocks", PairsSmall},
    {"pairs of medium blocks", PairsLarge},
    {"pairs of large blocks", PairsHuge},
    {"frees in order", InOrder, true},
    {"keeps small blocks", KeepSmall, true},
    {"keeps medium blocks", KeepMedium, true},
    {"frees older blocks", FreeOlder, true},
    {"forks", Fork, false, true},
    {"releases memory", Release, false, true},
    {"adds and removes a hook", AddHookInBetween, false, true},
    {"leaves a hook", LeaveHook, false, true},
    {"another thread releases memory", ReleaseElsewhere, false, true, true},
    {"the front end turns", Turn, false, true, true, true},
    {"the front end turns twice", TurnTwice, false, true, true, true},
};
constexpr Handler kDrainingHandlers[] = {
    {"pairs of blocks that drain", PairsDraining},
    {"pairs of blocks that drain, twice", PairsDrainingTwice},
    {"frees in order", InOrder, true},
    {"keeps small blocks", KeepSmall, true},
    {"frees older blocks", FreeOlder, true},
    {"releases memory", Release, false, true},
};

}  // namespace

std::span<const Handler> Handlers() { return kHandlers; }
std::span<const Handler> DrainingHandlers() { return kDrainingHandlers; }

void StockUp() {
  while (stock_count < stock.size()) stock[stock_count++] = Allocate(48);
}

void FinishHandlers() {
  Dismiss();
  while (crowd != 0 || releases != wanted_releases) ::sched_yield();
  Extension::RemoveHook(OnNew);
  while (kept_count > 0) Free(kept[--kept_count]);
  while (stock_count > 0) Free(stock[--stock_count]);
}

}  // namespace tcmalloc::testing
