// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The caches of CPUs with everything that they stand on, and threads that use them, for tests.

#ifndef TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_CPU_CACHE_H_
#define TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_CPU_CACHE_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "cache/per_cpu/cpu_cache.h"
#include "fakes/fake_batch_source.h"
#include "fakes/fake_source_table.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"
#include "unit/cache/per_cpu/test_slabs.h"

namespace tcmalloc::testing {

// Gives a few objects more than it was asked for, as a source may.
class GenerousSource : public FakeBatchSource {
 public:
  uint32_t more = 0;
  std::function<void()> on_array;  // called for each array that is inserted
  size_t most_kept = SIZE_MAX;     // objects beside which the last chain or array might be kept

  void InsertWhileFew(PackedChain packed, size_t few) {
    most_kept = few;
    if (packed.is_array() && on_array) on_array();
    FakeBatchSource::InsertWhileFew(packed, few);
  }

  Chain Fetch(uint32_t wanted) { return FakeBatchSource::Fetch(wanted + more); }
  uint32_t FetchArray(void** out, uint32_t wanted) { return CopyChain(Fetch(wanted), out); }
};

// Requires that Support() says kUsable.
class TestCpus {
 public:
  using Cache = CpuCache<FakeSourceTable<GenerousSource>>;

  static constexpr size_t kAmpleBytes = size_t{16} << 20;

  explicit TestCpus(CpuIds ids = Support().ids, int id_count = Support().id_count,
                    size_t bytes_per_cpu = kAmpleBytes) {
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      sources.at(c).Initialize(space, static_cast<uint8_t>(c));
    }
    RseqSupport support = Support();
    support.ids = ids;
    support.id_count = id_count;
    const Cache::Context context = {&sources, &space.codec, &*space.map, &arrays,
                                    space.map->classes_by_reference()};
    EXPECT_TRUE(cache.Initialize(context, support, TestFence::Call, bytes_per_cpu));
  }

  GenerousSource& source(uint8_t c) { return sources.at(c); }
  size_t ObjectsOut() const {
    size_t objects = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) objects += sources.at(c).objects_out();
    return objects;
  }
  size_t CachedObjects() const {
    size_t objects = 0;
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      objects += cache.CountObjects(static_cast<uint8_t>(c));
    }
    return objects;
  }
  size_t CachedBytes() { return cache.stats().cached_bytes; }

  ObjectSpace space;
  ChainArrays arrays{space.arena};
  FakeSourceTable<GenerousSource> sources;
  Cache cache{space.arena};
};

// A thread that CPUs' caches serve, used as the allocator uses it: the slow path where the fast one
// refuses. With an area of its own, which the kernel does not know, it runs wherever that says.
class TestCpuThread {
 public:
  explicit TestCpuThread(TestCpus& cpus, RseqArea* area = nullptr)
      : cpus_(cpus), thread_(cpus.cache.Join()) {
    if (thread_ == nullptr) return;
    if (area != nullptr) thread_->rseq_area = area;
    thread_->slow = {SlowAllocate, SlowDeallocate};
    cpus_.cache.Open(thread_);
  }
  ~TestCpuThread() {
    if (thread_ == nullptr) return;
    cpus_.cache.Close(thread_);
    cpus_.cache.Leave(thread_);
  }
  TestCpuThread(const TestCpuThread&) = delete;
  TestCpuThread& operator=(const TestCpuThread&) = delete;

  void* Allocate(uint8_t c) {
    current_ = this;
    const size_t size = kSizeClasses[c].size;
    const bool is_looked_up = size < kClassBySize.size() && kClassBySize[size] == c;
    if (is_looked_up) return thread_->malloc(size, thread_->name());
    void* object = cpus_.cache.TryAllocate(thread_, c, size);
    return object != nullptr ? object : AllocateClosed(c, size);
  }

  // Calls malloc's section, whether or not it looks up the size.
  void* Malloc(size_t size) {
    current_ = this;
    return thread_->malloc(size, thread_->name());
  }

  void Free(void* object) {
    current_ = this;
    thread_->deallocate(object, thread_->name(), ReferenceTo(object), 0);
  }

  std::vector<void*> AllocateMany(uint8_t c, size_t count) {
    std::vector<void*> objects;
    for (size_t i = 0; i < count; ++i) objects.push_back(Allocate(c));
    return objects;
  }
  void FreeAll(const std::vector<void*>& objects) {
    for (void* object : objects) Free(object);
  }

  CpuThread* thread() { return thread_; }
  const EventClock& clock() const { return thread_->clock(); }

  size_t slow_paths = 0;

 private:
  template <typename F>
  auto Closed(F f) {
    ++slow_paths;
    cpus_.cache.Close(thread_);
    auto result = f();
    cpus_.cache.Open(thread_);
    return result;
  }

  void* AllocateClosed(uint8_t c, size_t size) {
    return Closed([=, this] { return cpus_.cache.Allocate(thread_, c, size); });
  }
  static void* SlowAllocate(size_t size) {
    return current_->AllocateClosed(SizeClassFor(size), size);
  }
  static void SlowDeallocate(void* object) {
    TestCpuThread* self = current_;
    self->Closed([=] {
      const Span* span = self->cpus_.space.map->FindInUse(object);
      self->cpus_.cache.Deallocate(self->thread_, object, span->size_class);
      return true;
    });
  }

  static inline thread_local TestCpuThread* current_ = nullptr;

  TestCpus& cpus_;
  CpuThread* const thread_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_CPU_CACHE_H_
