// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Slabs, threads that use them, and objects to put into them, for tests.

#ifndef TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_SLABS_H_
#define TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_SLABS_H_

#include <atomic>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <vector>

#include "cache/per_cpu/cpu_slabs.h"
#include "cache/per_cpu/free_mark.h"
#include "cache/per_cpu/sections.h"
#include "fakes/fake_window.h"
#include "pages/free_link.h"
#include "pages/page_types.h"
#include "system/rseq.h"

namespace tcmalloc::testing {

// Support for restartable sequences that every test of one process finds.
inline const RseqSupport& Support() {
  static const RseqSupport support = DetectRseq();
  return support;
}

inline bool Has(CpuIds ids) {
  return Support().state == RseqState::kUsable &&
         (ids == CpuIds::kCpuId || Support().ids == CpuIds::kMmCid);
}

// FenceRseq, observed. A SectionFence is a plain function, hence the statics.
struct TestFence {
  static inline std::atomic<int> calls = 0;
  static inline std::atomic<int> last_cpu = 0;
  static inline std::atomic<int> refused = 0;  // so many of the next calls fail
  static inline void (*on_call)() = nullptr;
  static inline bool real = true;  // whether the kernel is asked at all

  static bool Call(int cpu) {
    ++calls;
    last_cpu = cpu;
    if (refused > 0) {
      --refused;
      return false;
    }
    if (on_call != nullptr) on_call();
    return !real || FenceRseq(cpu);
  }

  static void Reset() {
    calls = 0;
    last_cpu = 0;
    refused = 0;
    on_call = nullptr;
    real = true;
  }
};

inline uint32_t MarkOf(const void* object) {
  uint32_t mark = 0;
  std::memcpy(&mark, object, sizeof(mark));
  return mark;
}
// One for all slabs by ids of this kind in a process.
inline const FreeMark& FreeMarkBy(CpuIds ids) {
  static const auto make = [](CpuIds of) {
    FreeMark mark;
    if (!mark.Initialize(*SectionsFor(of).free_section, 3)) std::abort();
    return mark;
  };
  static const FreeMark by_mm_cid = make(CpuIds::kMmCid);
  static const FreeMark by_cpu_id = make(CpuIds::kCpuId);
  return ids == CpuIds::kMmCid ? by_mm_cid : by_cpu_id;
}
inline void SetMark(void* object, uint32_t mark) { std::memcpy(object, &mark, sizeof(mark)); }

// Memory that the class window calls objects of one class, as long as it is there. The marks of new
// objects are zero.
class ObjectPool {
 public:
  ObjectPool(FakeWindow& window, uint8_t c, size_t count) {
    const size_t size = kSizeClasses[c].size;
    const size_t bytes = Length::FromBytesCeil(size * count).bytes();
    memory_ = static_cast<char*>(std::aligned_alloc(kPageSize, bytes));
    std::memset(memory_, 0, bytes);
    entries_ = window.table() + (reinterpret_cast<uintptr_t>(memory_) >> kPageShift);
    entry_count_ = bytes >> kPageShift;
    std::memset(entries_, c, entry_count_);
    for (size_t i = 0; i < count; ++i) objects.push_back(memory_ + i * size);
  }
  ~ObjectPool() {
    std::memset(entries_, 0, entry_count_);
    std::free(memory_);
  }
  ObjectPool(const ObjectPool&) = delete;
  ObjectPool& operator=(const ObjectPool&) = delete;

  void* Take() {
    if (objects.empty()) return nullptr;
    void* object = objects.back();
    objects.pop_back();
    return object;
  }

  std::vector<void*> objects;  // not handed out

 private:
  char* memory_;
  uint8_t* entries_;
  size_t entry_count_;
};

// Requests to a thread's slow paths.
struct SlowCalls {
  int allocations = 0;
  size_t last_size = 0;
  std::vector<void*> deallocations;
};
inline thread_local SlowCalls slow_calls;

inline void* SlowAllocate(size_t size) {
  ++slow_calls.allocations;
  slow_calls.last_size = size;
  return nullptr;
}
inline void SlowDeallocate(void* object) { slow_calls.deallocations.push_back(object); }

// A thread's header, and the routines by which the thread uses `slabs`.
class SlabThread {
 public:
  SlabThread(const CpuSlabs& slabs, const FakeWindow& window, CpuIds ids, RseqArea* area)
      : sections_(SectionsFor(ids)), ids_(ids) {
    ThreadHeader& header = lists->header;
    header.free_section = FreeMarkBy(ids).section();
    header.link_limit = static_cast<int64_t>((uint64_t{1} << 63) + FakeWindow::kEndOfUserSpace / 8);
    header.classes =
        reinterpret_cast<uintptr_t>(window.table()) - (uintptr_t{1} << (66 - kPageShift));
    header.clock.Initialize(1);
    header.rseq_area = area;
    header.slabs = slabs.memory();
    header.slow = {SlowAllocate, SlowDeallocate};
  }

  int id() const {
    const RseqArea* area = lists->header.rseq_area;
    const uint32_t& field = ids_ == CpuIds::kMmCid ? area->mm_cid : area->cpu_id;
    return static_cast<int>(*static_cast<const volatile uint32_t*>(&field));
  }
  uint32_t mark() const { return FreeMarkBy(ids_).value(); }
  uint32_t aborts() const { return lists->header.aborts; }
  EventClock& clock() { return lists->header.clock; }

  // Null also where the slow path was called.
  void* Allocate(size_t size) { return sections_.allocate(size, lists.get(), SlowAllocate); }
  void* Malloc(size_t size) { return sections_.malloc(size, lists.get()); }
  void Deallocate(void* object) {
    sections_.deallocate(object, lists.get(), ReferenceTo(object), 0);
  }
  void* Pop(uint8_t c) { return sections_.pop(c, lists.get()); }
  void* PopCounted(uint8_t c, size_t size) { return sections_.pop_counted(c, lists.get(), size); }
  bool Push(uint8_t c, void* object) {
    FreeMarkBy(ids_).Put(object);
    return sections_.push(c, lists.get(), object);
  }
  uint32_t PopBatch(uint8_t c, void** out, uint32_t n) {
    return sections_.pop_batch(c, lists.get(), out, n);
  }
  uint32_t PushBatch(uint8_t c, void* const* in, uint32_t n) {
    return sections_.push_batch(c, lists.get(), in, n);
  }

  std::unique_ptr<FastLists> lists = std::make_unique<FastLists>();

 private:
  const Sections& sections_;
  CpuIds ids_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_CACHE_PER_CPU_TEST_SLABS_H_
