// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/current_thread.h"

#include <pthread.h>

#include "heap/fork.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

enum class Phase : uint8_t {
  kNew,     // has not allocated yet, or its cache could not be made
  kCached,  // has a cache
  kInside,  // is in the slow path without a cache
  kEnded,   // its destructors have run; it gets no cache again
};

// Destructors of other keys may still allocate and free. The cache is given up in this round of
// destructors, of the four that POSIX promises.
constexpr uint8_t kLastRound = 3;

constinit thread_local Phase phase __attribute__((tls_model("initial-exec"))) = Phase::kNew;
constinit thread_local uint8_t destructor_rounds __attribute__((tls_model("initial-exec"))) = 0;

constinit Cache no_cache;

// Written before the heap is initialized, then constant. Without a key caches outlive their
// threads.
constinit pthread_key_t key = 0;
constinit bool has_key = false;

bool GiveToThread(Cache* cache) {
  return !has_key || system_calls.pthread_setspecific(key, cache) == 0;
}

void OnThreadEnd(void* pointer) {
  auto* cache = static_cast<Cache*>(pointer);
  if (++destructor_rounds < kLastRound && GiveToThread(cache)) return;
  phase = Phase::kInside;
  current_cache = &no_cache;
  heap.caches().Destroy(cache);
  phase = Phase::kEnded;
}

// Gives the thread a cache, closed. Requires phase kInside, for the calls may allocate.
bool StartThread() {
  heap.EnsureInitialized();
  RegisterForkHandlers();
  Cache* cache = heap.caches().Create(heap.context());
  if (cache == nullptr) return false;
  if (!GiveToThread(cache)) {
    heap.caches().Destroy(cache);
    return false;
  }
  cache->Close();
  current_cache = cache;
  return true;
}

}  // namespace

constinit thread_local Cache* current_cache = &no_cache;

void InitializeCurrentThread() { current_cache = &no_cache; }

void WatchThreadEnds() { has_key = system_calls.pthread_key_create(&key, OnThreadEnd) == 0; }

Entry EnterSlowPath() {
  if (!current_cache->closed()) {
    current_cache->Close();
    return Entry::kCached;
  }
  if (phase == Phase::kEnded) {
    phase = Phase::kInside;
    return Entry::kUncached;
  }
  if (phase != Phase::kNew) return Entry::kReentrant;
  phase = Phase::kInside;
  if (!StartThread()) return Entry::kUncached;
  phase = Phase::kCached;
  return Entry::kCached;
}

void LeaveSlowPath(Entry entry) {
  if (entry == Entry::kCached) current_cache->Open();
  if (entry == Entry::kUncached) {
    phase = destructor_rounds < kLastRound ? Phase::kNew : Phase::kEnded;
  }
}

}  // namespace tcmalloc
