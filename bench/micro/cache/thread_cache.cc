// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An operation is an allocation and a free on a thread cache, with the slow path where the fast one
// refuses.

#include "cache/per_thread/thread_cache.h"

#include <cstdint>
#include <string>
#include <vector>

#include "common/harness.h"
#include "heap/heap.h"

namespace tcmalloc::bench {
namespace {

void* Allocate(Cache* cache, uint8_t c, size_t size) {
  if (void* object = cache->TryAllocate(c, size)) return object;
  cache->UndoTryAllocate(c);
  cache->Close();
  void* object = cache->AllocateSlow(c, size);
  cache->Open();
  return object;
}

void Free(Cache* cache, void* object, uint8_t c) {
  if (IsBelow(ReferenceTo(object), cache->thread()->address_limit)) {
    if (cache->TryFree(object)) return;
    cache->UndoTryFree(object);
  }
  cache->Close();
  cache->FreeSlow(object, c);
  cache->Open();
}

void RunPairs(Harness& harness, Cache* cache, size_t size) {
  const uint8_t c = SizeClassFor(size);
  const std::string suffix = "/size:" + std::to_string(size);
  harness.Run("cache/pair" + suffix, [&](uint64_t n) {
    for (uint64_t i = 0; i < n; ++i) Free(cache, Allocate(cache, c, size), c);
  });
  for (size_t count : {100, 10'000}) {
    std::vector<void*> objects(count);
    harness.Run("cache/batch_of_" + std::to_string(count) + suffix, [&](uint64_t n) {
      for (uint64_t i = 0; i < n; i += count) {
        for (void*& object : objects) object = Allocate(cache, c, size);
        for (void* object : objects) Free(cache, object, c);
      }
    });
  }
}

// One cache allocates what another frees.
void RunHandover(Harness& harness, Cache* producer, Cache* consumer, size_t size) {
  const uint8_t c = SizeClassFor(size);
  std::vector<void*> objects(1000);
  harness.Run("cache/handover/size:" + std::to_string(size), [&](uint64_t n) {
    for (uint64_t i = 0; i < n; i += objects.size()) {
      for (void*& object : objects) object = Allocate(producer, c, size);
      for (void* object : objects) Free(consumer, object, c);
    }
  });
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  tcmalloc::bench::Harness harness(argc, argv);
  tcmalloc::heap.EnsureInitialized();
  tcmalloc::Cache* cache = tcmalloc::heap.caches().Create(tcmalloc::heap.context());
  tcmalloc::Cache* other = tcmalloc::heap.caches().Create(tcmalloc::heap.context());
  for (size_t size : {8, 64, 512, 1024}) {
    tcmalloc::bench::RunPairs(harness, cache, size);
    tcmalloc::bench::RunHandover(harness, cache, other, size);
  }
}
