// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/current_thread.h"

#include <pthread.h>

#include <atomic>

#include "thread/fork.h"
#include "hook/hooks.h"
#include "system/signal_mask.h"
#include "system/system_calls.h"

namespace tcmalloc {

// Declared weak here alone, so that every other reference still makes a linker look for it.
__attribute__((weak)) void* MallocSlow(size_t size);
__attribute__((weak)) void DeallocateSlow(void* block);

namespace {

enum class Phase : uint8_t {
  kNew,     // has not allocated yet, or no front end could be had so far
  kServed,  // has a front end, and is outside the slow path
  kInside,  // is in the slow path
  kEnded,   // its destructors have run, or it is suspended; it gets no front end again
};

// Destructors of other keys may still allocate and free. The cache is given up in this round of
// destructors, of the four that POSIX promises.
constexpr uint8_t kLastRound = 3;

constinit thread_local Phase phase TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = Phase::kNew;
constinit thread_local uint8_t destructor_rounds TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = 0;

// The forks that this thread has under way, one within the other, and what they found.
struct Forks {
  uint8_t depth = 0;
  GateFindings findings;
};
constinit thread_local Forks forks TCMALLOC_INITIALIZED_TLS
    __attribute__((tls_model("initial-exec"))) = {};

constinit Cache no_cache{SlowPaths{MallocSlow, DeallocateSlow}};

// Written before the heap is initialized, then constant. Without a key caches outlive their
// threads.
constinit pthread_key_t key = 0;
constinit bool has_key = false;

// The records of threads that ended while the gate was closed, linked by ThreadHeader::next_ended.
constinit std::atomic<FastLists*> ended{nullptr};
// In a child whose vanished threads left something to be cleared: where the record of its first
// thread is found, which is a word of that thread while it lives.
constinit Cache** survivor = nullptr;
constinit Cache* ended_survivor = nullptr;

// How the running thread is known to the gate while it has no seat.
ThreadId Self() { return &phase; }

GateSeat* SeatOf(Cache* cache) { return cache->lists()->header.seat; }

// Without lists, the record of a thread that the caches of CPUs serve.
bool IsCpuThread(Cache* cache) { return cache->lists()->header.rseq_area != nullptr; }

void ReleaseRecord(Cache* cache) {
  if (IsCpuThread(cache)) {
    heap.cpus().Leave(cache->lists());
  } else {
    heap.caches().Destroy(cache);
  }
}

// Gives up the records and the seat of a thread that has ended, or gets no front end.
void Release(Cache* cache) {
  GateSeat* seat = SeatOf(cache);
  if (FastLists* other = cache->lists()->header.other) ReleaseRecord(Cache::WithoutLists(other));
  ReleaseRecord(cache);
  heap.gate().ReturnSeat(seat);
  if (heap.front_end().NoteEnd()) heap.cpus().Flush();
}

void PushEnded(FastLists* thread) {
  thread->header.next_ended = ended.load(std::memory_order_relaxed);
  // Release pairs with the acquire in ReleaseEnded.
  while (!ended.compare_exchange_weak(thread->header.next_ended, thread, std::memory_order_release,
                                      std::memory_order_relaxed)) {
  }
}

// Called inside.
void ReleaseEnded() {
  if (TCMALLOC_LIKELY(ended.load(std::memory_order_relaxed) == nullptr)) return;
  FastLists* thread = ended.exchange(nullptr, std::memory_order_acquire);
  while (thread != nullptr) {
    FastLists* next = thread->header.next_ended;
    Release(Cache::WithoutLists(thread));
    thread = next;
  }
}

// Takes the front end away from the running thread, which is outside the slow path, and leaves the
// phase `then`. Another thread releases it if a fork is under way.
void GiveUpFrontEnd(Phase then) {
  phase = Phase::kInside;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  const bool entered = heap.gate().EnterAsStranger(Self());
  Cache* cache = current_cache;
  if (entered) {
    current_cache = &no_cache;
    Release(cache);
    ReleaseEnded();
    heap.gate().LeaveAsStranger(Self());
  } else {
    if (survivor == &current_cache) {
      ended_survivor = cache;
      survivor = &ended_survivor;
    }
    current_cache = &no_cache;
    PushEnded(cache->lists());
  }
  phase = then;
}

// Any value but null makes libc call OnThreadEnd.
bool WatchThread(void* value) {
  return !has_key || system_calls.pthread_setspecific(key, value) == 0;
}

void OnThreadEnd(void* value) {
  if (++destructor_rounds < kLastRound && WatchThread(value)) return;
  GiveUpFrontEnd(Phase::kEnded);
}

Cache* JoinCpus() {
  FastLists* thread = heap.cpus().Join();
  return thread != nullptr ? Cache::WithoutLists(thread) : nullptr;
}

Cache* MakeThreadCache() {
  Cache* cache = heap.caches().Create(heap.context());
  if (cache != nullptr) cache->Close();
  return cache;
}

// A front end of the kind that is wanted, closed, or a cache of its own for a thread that cannot
// have it. Null if no memory can be had.
Cache* MakeFrontEnd() {
  Cache* cache = nullptr;
  if (heap.front_end().wanted() == FrontEnd::kPerCpu) cache = JoinCpus();
  return cache != nullptr ? cache : MakeThreadCache();
}

// Gives the thread a front end, closed, if that can be had and it is clear which. Called inside.
bool StartThread() {
  ReleaseEnded();
  GateSeat* seat = heap.gate().TakeSeat(heap.arena());
  if (seat == nullptr) return false;
  const bool decided = heap.front_end().NoteStart([] { return heap.StartPerCpu(); });
  Cache* cache = decided ? MakeFrontEnd() : nullptr;
  if (cache == nullptr) {
    heap.gate().ReturnSeat(seat);
    if (heap.front_end().NoteEnd()) heap.cpus().Flush();
    return false;
  }
  cache->lists()->header.seat = seat;
  current_cache = cache;
  return true;
}

Entry EntryOf(Cache* cache) { return IsCpuThread(cache) ? Entry::kCpuCache : Entry::kThreadCache; }

// Moves a thread, which is closed, to its other front end. It stays where it is if that cannot be
// had, and while a signal handler that interrupted a fast path at a list may have objects of that
// list, which must come back to it. Both records stay the thread's own until it ends; see
// ThreadHeader::other.
TCMALLOC_COLD void Move() {
  Cache* old = current_cache;
  const bool to_cpus = !IsCpuThread(old);
  if (to_cpus && !old->IsAtRest()) return;
  FastLists* other = old->lists()->header.other;
  if (other == nullptr) {
    Cache* made = to_cpus ? JoinCpus() : MakeThreadCache();
    if (made == nullptr) return;
    other = made->lists();
    other->header.seat = SeatOf(old);
    other->header.other = old->lists();
    old->lists()->header.other = other;
  } else if (!to_cpus) {
    Cache::WithoutLists(other)->Rejoin();
  }
  current_cache = Cache::WithoutLists(other);
  if (to_cpus) old->Park();
}

bool IsWhereWanted(Entry entry) {
  return (entry == Entry::kCpuCache) == (heap.front_end().wanted() == FrontEnd::kPerCpu);
}

void CloseFrontEnd(Cache* cache, Entry entry) {
  entry == Entry::kCpuCache ? Cpus::Close(cache->lists()) : cache->Close();
}

// Closes the running thread to its front end, if it has one and is outside the slow path, and says
// by `*entry` which. That it is closed already may be because blocks are watched, and says nothing.
bool CloseThread(Entry* entry) {
  if (TCMALLOC_UNLIKELY(phase != Phase::kServed)) return false;
  phase = Phase::kInside;
  // A signal handler that finds the front end closed must find the phase as well, or it would open.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  *entry = EntryOf(current_cache);
  CloseFrontEnd(current_cache, *entry);
  return true;
}

// Undoes CloseThread. While hooks want to hear of blocks the thread stays closed. It opens first
// and looks afterwards: whoever adds a hook fences in between, and then closes all threads, so that
// either this one sees the hook or its opening comes before it is closed.
void OpenThread(Entry entry) {
  entry == Entry::kCpuCache ? heap.cpus().Open(current_cache->lists()) : current_cache->Open();
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (TCMALLOC_UNLIKELY(BlocksAreWatched())) CloseFrontEnd(current_cache, entry);
  phase = Phase::kServed;
}

// Turns away from a closed gate, with the front end as it was found. In a fork of its own, and
// where nothing may be trusted that threads share, the thread stays closed to it.
TCMALLOC_COLD Entry TurnAway(Entry entry) {
  if (forks.depth == 0 && !heap.gate().IsDamaged()) {
    OpenThread(entry);
  } else {
    phase = Phase::kServed;
  }
  return Entry::kReentrant;
}

// Whether the running thread is outside, and a fork of another one keeps it there.
bool MayWait() { return phase != Phase::kInside && forks.depth == 0 && !heap.gate().IsDamaged(); }

// Waits at a closed gate, but not for a fork of the thread's own. True if it may try again.
TCMALLOC_COLD bool AwaitGate() { return forks.depth == 0 && heap.gate().AwaitOpening(); }

bool EnterBySeat() {
  GateSeat* seat = SeatOf(current_cache);
  return TCMALLOC_LIKELY(heap.gate().Enter(seat)) || (AwaitGate() && heap.gate().Enter(seat));
}

// False if the gate is closed; then the phase is `otherwise`.
bool BecomeStranger(Phase otherwise) {
  phase = Phase::kInside;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (heap.gate().EnterAsStranger(Self())) return true;
  if (AwaitGate() && heap.gate().EnterAsStranger(Self())) return true;
  phase = otherwise;
  return false;
}

// Lets a thread that was just started leave, and libc know of it. That may allocate, and the thread
// is served by then. False if libc has no memory for it: the thread has no front end any more.
bool OpenNewThread() {
  heap.gate().LeaveAsStranger(Self());
  OpenThread(EntryOf(current_cache));
  RegisterForkHandlers();
  if (WatchThread(current_cache)) return true;
  GiveUpFrontEnd(Phase::kNew);
  return false;
}

// The entry of a thread that has no front end yet, or no longer.
TCMALLOC_NOINLINE Entry EnterWithoutSeat() {
  const Phase before = phase;
  if (!BecomeStranger(before)) return Entry::kReentrant;
  // It may be the first thread, and shall find lists to share.
  heap.EnsureInitialized();
  if (before == Phase::kEnded || !StartThread()) return Entry::kUncached;
  if (OpenNewThread()) return EnterSlowPath();
  return BecomeStranger(Phase::kNew) ? Entry::kUncached : Entry::kReentrant;
}

}  // namespace

constinit thread_local Cache* current_cache = &no_cache;

SlowPaths SlowPathsOfEntryPoints() { return {MallocSlow, DeallocateSlow}; }

void InitializeCurrentThread() { current_cache = &no_cache; }

void WatchThreadEnds() { has_key = system_calls.pthread_key_create(&key, OnThreadEnd) == 0; }

Entry EnterSlowPath() {
  Entry entry = Entry::kUncached;
  if (TCMALLOC_LIKELY(CloseThread(&entry))) {
    if (TCMALLOC_UNLIKELY(!EnterBySeat())) return TurnAway(entry);
    if (TCMALLOC_LIKELY(IsWhereWanted(entry))) return entry;
    Move();
    return EntryOf(current_cache);
  }
  return phase == Phase::kInside ? Entry::kReentrant : EnterWithoutSeat();
}

Entry EnterSlowPathPatiently() {
  // About a second: each try waits at the gate.
  constexpr int kMostTries = 10'000;
  Entry entry = EnterSlowPath();
  for (int i = 0; i < kMostTries && entry == Entry::kReentrant && MayWait(); ++i) {
    entry = EnterSlowPath();
  }
  return entry;
}

void LeaveSlowPath(Entry entry) {
  switch (entry) {
    case Entry::kThreadCache:
    case Entry::kCpuCache:
      heap.gate().Leave(SeatOf(current_cache));
      return OpenThread(entry);
    case Entry::kUncached:
      heap.gate().LeaveAsStranger(Self());
      phase = destructor_rounds < kLastRound ? Phase::kNew : Phase::kEnded;
      return;
    case Entry::kReentrant:
      return;
  }
}

void ReturnToSlowPathSoon(Entry entry) {
  constexpr int64_t kSoon = 4096;  // allocated bytes
  if (entry == Entry::kThreadCache || entry == Entry::kCpuCache) {
    current_cache->lists()->header.clock.Hasten(kSoon);
  }
}

SuspendedThread SuspendThread() {
  SuspendedThread thread = {nullptr, static_cast<uint8_t>(phase), destructor_rounds, false};
  Entry entry = Entry::kUncached;
  if (CloseThread(&entry)) {
    thread.cache = current_cache;
  } else if (phase != Phase::kNew && phase != Phase::kEnded) {
    thread.interrupted = true;
    return thread;
  }
  phase = Phase::kInside;
  current_cache = &no_cache;
  destructor_rounds = kLastRound;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  phase = Phase::kEnded;
  return thread;
}

void ResumeThread(SuspendedThread thread) {
  if (thread.interrupted) return;
  // A child that was killed has not left.
  if (phase == Phase::kInside) heap.gate().LeaveAsStranger(Self());
  phase = Phase::kInside;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  destructor_rounds = thread.destructor_rounds;
  if (thread.cache == nullptr) {
    phase = static_cast<Phase>(thread.phase);
    return;
  }
  current_cache = thread.cache;
  OpenThread(EntryOf(thread.cache));
}

void BeginFork() {
  {
    const SignalsBlocked scope;
    // What this thread allocates until the end of the fork comes from nowhere that others use.
    if (phase == Phase::kServed) CloseFrontEnd(current_cache, EntryOf(current_cache));
    heap.gate().Close(SeatOf(current_cache), Self());
    ++forks.depth;
  }
  const GateFindings found = heap.gate().AwaitOthers(SeatOf(current_cache), Self());
  if (found.others) forks.findings.others = true;
  if (found.abandon) forks.findings.abandon = true;
}

void EndForkInParent() {
  {
    const SignalsBlocked scope;
    --forks.depth;
    heap.gate().Open(SeatOf(current_cache), Self(), forks.depth == 0);
    if (forks.depth > 0) return;
    forks.findings = {};
    if (phase == Phase::kServed && !heap.gate().IsDamaged()) OpenThread(EntryOf(current_cache));
  }
  if (TCMALLOC_LIKELY(ended.load(std::memory_order_relaxed) == nullptr)) return;
  const Entry entry = EnterSlowPath();
  if (entry != Entry::kReentrant) ReleaseEnded();
  LeaveSlowPath(entry);
}

void EndForkInChild() {
  const SignalsBlocked scope;
  --forks.depth;
  heap.background().ResetAfterFork();
  if (forks.findings.others) {
    // Other threads may have been at these while the kernel copied one page after the other.
    heap.cpus().AbandonObjects();
    heap.deferred().Abandon();
    ended.store(nullptr, std::memory_order_relaxed);
    survivor = &current_cache;
  }
  heap.gate().OpenInChild(SeatOf(current_cache), Self(), forks.depth, forks.findings);
  if (forks.depth > 0) return;
  forks.findings = {};
  if (phase == Phase::kServed && !heap.gate().IsDamaged()) OpenThread(EntryOf(current_cache));
}

void ClearAfterFork() {
  FastLists* on_cpus = nullptr;
  Cache* with_lists = nullptr;
  const auto keep = [&](Cache* cache) {
    if (IsCpuThread(cache)) {
      on_cpus = cache->lists();
    } else {
      with_lists = cache;
    }
  };
  Cache* mine = *survivor;
  const bool has_one = mine != &no_cache;
  if (has_one) {
    keep(mine);
    if (FastLists* other = mine->lists()->header.other) keep(Cache::WithoutLists(other));
  }
  heap.cpus().KeepOnly(on_cpus);
  heap.caches().KeepOnly(with_lists);
  heap.budget().KeepOnly(with_lists != nullptr ? &with_lists->share() : nullptr);
  heap.front_end().ResetAfterFork(has_one ? 1 : 0);
  heap.housekeeping().ResetAfterFork();
  heap.gate().FreeOtherSeats(SeatOf(mine));
}

}  // namespace tcmalloc
