// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Thread caches with everything that they stand on, for tests.

#ifndef TCMALLOC_TESTS_UNIT_CACHE_PER_THREAD_TEST_CACHE_H_
#define TCMALLOC_TESTS_UNIT_CACHE_PER_THREAD_TEST_CACHE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "cache/per_thread/cache_budget.h"
#include "cache/per_thread/thread_cache.h"
#include "fakes/fake_batch_source.h"
#include "fakes/fake_source_table.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {

// One that is neither the smallest nor rare.
inline constexpr uint8_t kClass = SizeClassFor(64);

// Parts that caches share: a source of every class, and a budget.
struct TestSources {
  using Cache = ThreadCache<FakeSourceTable<FakeBatchSource>>;

  static constexpr size_t kAmpleBudget = size_t{1} << 30;

  explicit TestSources(Window window = Window::kAll) : space(window) {
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      sources.at(c).Initialize(space, static_cast<uint8_t>(c));
    }
    budget.SetTotal(kAmpleBudget);
    context = {&sources, &space.codec, space.map.get(), &arrays, &budget};
  }

  FakeBatchSource& source(uint8_t c) { return sources.at(c); }
  size_t ObjectsOut() const {
    size_t objects = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) objects += sources.at(c).objects_out();
    return objects;
  }

  ObjectSpace space;
  ChainArrays arrays{space.arena};
  CacheBudget budget;
  FakeSourceTable<FakeBatchSource> sources;
  Cache::Context context;
};

// One cache, used as the allocator uses it: the slow path where the fast one refuses.
class TestCache {
 public:
  using Cache = TestSources::Cache;

  explicit TestCache(TestSources& sources) : sources_(sources) {
    cache_->Initialize(sources.context);
  }
  ~TestCache() {
    if (!cache_->closed()) cache_->Retire();
  }
  TestCache(const TestCache&) = delete;
  TestCache& operator=(const TestCache&) = delete;

  Cache* operator->() { return cache_.get(); }

  void* Allocate(uint8_t c) {
    const size_t size = kSizeClasses[c].size;
    if (void* object = cache_->TryAllocate(c, size)) {
      ++hits;
      return object;
    }
    cache_->UndoTryAllocate(c);
    cache_->Close();
    void* object = cache_->AllocateSlow(c, size);
    cache_->Open();
    return object;
  }

  // Does what free does before its slow path; false leaves the object in use.
  bool TryFree(void* object) {
    if (!IsBelow(ReferenceTo(object), cache_->thread()->address_limit)) {
      EXPECT_FALSE(cache_->TryFree(object));
      return false;
    }
    if (cache_->TryFree(object)) return true;
    cache_->UndoTryFree(object);
    return false;
  }
  // Has `object`, for which the list of class `c` has no room, freed while a signal handler that
  // interrupts the free takes an object and frees it.
  void FreeUnderHandler(void* object, uint8_t c) {
    ASSERT_FALSE(cache_->TryFree(object));
    GoOnUnderHandler(object, c);
  }
  // Does the rest of that where the cache has refused already.
  void GoOnUnderHandler(void* refused, uint8_t c) {
    const size_t size = kSizeClasses[c].size;
    // A clock that expires just then would refuse the handler's object.
    EventClock& clock = cache_->thread()->clock;
    if (clock.WouldExpire(size)) clock.Initialize(/*seed=*/1);
    void* const taken = cache_->TryAllocate(c, size);
    ASSERT_NE(taken, nullptr);
    Free(taken);
    FreeRefused(refused);
    cache_->CheckInvariants();
  }
  // Goes on with a free that TryFree of the cache has refused.
  void FreeRefused(void* object) {
    cache_->UndoTryFree(object);
    FreeSlow(object);
  }

  void Free(void* object) {
    if (TryFree(object)) {
      ++hits;
      return;
    }
    FreeSlow(object);
  }
  void FreeSlow(void* object) {
    cache_->Close();
    cache_->FreeSlow(object, sources_.space.map->FindInUse(object)->size_class);
    cache_->Open();
  }

  std::vector<void*> AllocateMany(uint8_t c, size_t count) {
    std::vector<void*> objects;
    for (size_t i = 0; i < count; ++i) objects.push_back(Allocate(c));
    return objects;
  }
  void FreeAll(const std::vector<void*>& objects) {
    for (void* object : objects) Free(object);
  }
  void Collect() {
    cache_->Close();
    cache_->Collect();
    cache_->Open();
  }

  size_t hits = 0;  // of the fast paths

 private:
  TestSources& sources_;
  std::unique_ptr<Cache> cache_ = std::make_unique<Cache>();
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_CACHE_PER_THREAD_TEST_CACHE_H_
