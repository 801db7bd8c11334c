// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/current_thread.h"

#include <pthread.h>

#include <atomic>

#include "heap/fork.h"
#include "hook/hooks.h"
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

constinit Cache no_cache{SlowPaths{MallocSlow, DeallocateSlow}};

// Written before the heap is initialized, then constant. Without a key caches outlive their
// threads.
constinit pthread_key_t key = 0;
constinit bool has_key = false;

// Without lists, the record of a thread that the caches of CPUs serve.
bool IsCpuThread(Cache* cache) { return cache->lists()->header.rseq_area != nullptr; }

void Release(Cache* cache) {
  if (FastLists* other = cache->lists()->header.other) {
    other->header.other = nullptr;
    Release(Cache::WithoutLists(other));
  }
  if (IsCpuThread(cache)) {
    heap.cpus().Leave(cache->lists());
  } else {
    heap.caches().Destroy(cache);
  }
}

void NoteThreadEnd() {
  if (heap.front_end().NoteEnd()) heap.cpus().Flush();
}

// Any value but null makes libc call OnThreadEnd.
bool WatchThread(void* value) {
  return !has_key || system_calls.pthread_setspecific(key, value) == 0;
}

void OnThreadEnd(void* value) {
  if (++destructor_rounds < kLastRound && WatchThread(value)) return;
  phase = Phase::kInside;
  Cache* cache = current_cache;
  current_cache = &no_cache;
  Release(cache);
  NoteThreadEnd();
  phase = Phase::kEnded;
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

// Gives the thread a front end, if that can be had and it is clear which. Requires phase kInside,
// for the calls may allocate.
bool StartThread() {
  heap.EnsureInitialized();
  RegisterForkHandlers();
  const bool decided = heap.front_end().NoteStart([] { return heap.StartPerCpu(); });
  Cache* cache = decided ? MakeFrontEnd() : nullptr;
  if (cache == nullptr || !WatchThread(cache)) {
    if (cache != nullptr) Release(cache);
    NoteThreadEnd();
    return false;
  }
  current_cache = cache;
  return true;
}

Entry EntryOf(Cache* cache) { return IsCpuThread(cache) ? Entry::kCpuCache : Entry::kThreadCache; }

// Moves a thread, which is closed, to its other front end. It stays where it is if that cannot be
// had. Both records stay the thread's own until it ends; see ThreadHeader::other.
TCMALLOC_COLD void Move() {
  Cache* old = current_cache;
  const bool to_cpus = !IsCpuThread(old);
  FastLists* other = old->lists()->header.other;
  if (other == nullptr) {
    Cache* made = to_cpus ? JoinCpus() : MakeThreadCache();
    if (made == nullptr) return;
    other = made->lists();
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

}  // namespace

constinit thread_local Cache* current_cache = &no_cache;

SlowPaths SlowPathsOfEntryPoints() { return {MallocSlow, DeallocateSlow}; }

void InitializeCurrentThread() { current_cache = &no_cache; }

void WatchThreadEnds() { has_key = system_calls.pthread_key_create(&key, OnThreadEnd) == 0; }

Entry EnterSlowPath() {
  Entry entry = Entry::kUncached;
  if (CloseThread(&entry)) {
    if (TCMALLOC_LIKELY(IsWhereWanted(entry))) return entry;
    Move();
    return EntryOf(current_cache);
  }
  if (phase == Phase::kEnded) {
    phase = Phase::kInside;
    return Entry::kUncached;
  }
  if (phase != Phase::kNew) return Entry::kReentrant;
  phase = Phase::kInside;
  return StartThread() ? EntryOf(current_cache) : Entry::kUncached;
}

void LeaveSlowPath(Entry entry) {
  switch (entry) {
    case Entry::kThreadCache:
    case Entry::kCpuCache:
      return OpenThread(entry);
    case Entry::kUncached:
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
  // It may be the first thread, and shall find lists to share.
  heap.EnsureInitialized();
  current_cache = &no_cache;
  destructor_rounds = kLastRound;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  phase = Phase::kEnded;
  return thread;
}

void ResumeThread(SuspendedThread thread) {
  if (thread.interrupted) return;
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

}  // namespace tcmalloc
