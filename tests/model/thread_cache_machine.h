// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A few thread caches that share their sources and exchange objects, beside a model of them: a set
// of objects. See replay.h.

#ifndef TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>

#include "model/replay.h"
#include "model/stamped_blocks.h"
#include "unit/cache/per_thread/test_cache.h"

namespace tcmalloc::testing {

class ThreadCacheMachine {
 public:
  enum Op : unsigned {
    kAllocate,
    kAllocateMany,
    kFree,
    kFreeMany,
    kRefused,
    kCollect,
    kFlush,
    kRestart,
    kFail,
    kShrink
  };
  static constexpr const char* kNames[] = {"kAllocate", "kAllocateMany", "kFree",  "kFreeMany",
                                           "kRefused",  "kCollect",      "kFlush", "kRestart",
                                           "kFail",     "kShrink"};

  ThreadCacheMachine(Window window, size_t budget) : sources_(window) {
    sources_.budget.SetTotal(budget);
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      sources_.sources.at(c).fail = [this] { return failures_ > 0 && failures_-- > 0; };
      sources_.sources.at(c).has_lines = true;
    }
    for (auto& cache : caches_) cache = std::make_unique<TestCache>(sources_);
  }

  void Do(const Action& action) {
    TestCache& cache = *caches_[action.a % caches_.size()];
    switch (action.op) {
      case kAllocate:
        return Allocate(cache, action.b, 1);
      case kAllocateMany:
        return Allocate(cache, action.b, 1 + action.a / 8 % 200);
      case kFree:
        return Free(cache, action.b, 1);
      case kFreeMany:
        return Free(cache, action.b, 1 + action.a / 8 % 200);
      case kRefused:
        return Refused(cache, action.b);
      case kCollect:
        return cache.Collect();
      case kFlush:
        return Flush(cache);
      case kRestart:
        return Restart(action.a % caches_.size());
      case kFail:
        failures_ = action.b % 4;
        return;
      case kShrink:
        return Shrink(cache, action.b, action.a / 8 % 1000);
    }
  }

  void CheckAll() {
    size_t cached = 0;
    for (auto& cache : caches_) {
      (*cache)->CheckInvariants();
      for (size_t c = 1; c < kSizeClassCount; ++c) {
        cached += (*cache)->CountObjects(static_cast<uint8_t>(c));
      }
    }
    sources_.budget.CheckInvariants();
    ASSERT_EQ(sources_.ObjectsOut(), blocks_.size() + cached);
    blocks_.Check();
  }

  void Finish() {
    while (!blocks_.empty()) Free(*caches_[0], 0, 1);
    for (auto& cache : caches_) (*cache)->Retire();
    ASSERT_EQ(sources_.ObjectsOut(), 0u);
    sources_.budget.CheckInvariants();
  }

 private:
  // A few classes, so that their lists grow.
  static uint8_t PickClass(uint64_t pick) {
    constexpr size_t kSizes[] = {8, 16, 64, 64, 64, 400, 2048, 2048, 16384, kMaxSmallSize};
    return SizeClassFor(kSizes[pick % std::size(kSizes)]);
  }

  void Allocate(TestCache& cache, uint64_t pick, uint64_t count) {
    const uint8_t c = PickClass(pick);
    for (; count > 0; --count) {
      auto* object = static_cast<uint64_t*>(cache.Allocate(c));
      if (object == nullptr) continue;
      blocks_.Add(object, c, *sources_.space.map);
    }
  }

  void Free(TestCache& cache, uint64_t pick, uint64_t count) {
    for (; count > 0 && !blocks_.empty(); --count) {
      cache.Free(blocks_.Take(pick));
    }
  }

  // A class becomes smaller, while now and then an object of it is allocated.
  void Shrink(TestCache& cache, uint64_t pick, uint64_t frees) {
    Allocate(cache, pick, frees);
    for (uint64_t i = 0; i < frees && !blocks_.empty(); ++i) {
      cache.Free(blocks_.TakeLast());
      if (i % 3 == 0) Allocate(cache, pick, 1);
    }
  }

  // Frees that the fast path must refuse, whatever the state of the cache.
  void Refused(TestCache& cache, uint64_t pick) {
    if (blocks_.empty()) return;
    const char* object = static_cast<const char*>(blocks_.at(pick));
    for (const void* address :
         {static_cast<const void*>(object + 1 + pick % 7), static_cast<const void*>(nullptr),
          static_cast<const void*>(this),
          reinterpret_cast<const void*>(pick | FakeWindow::kEndOfUserSpace)}) {
      ASSERT_FALSE(cache.TryFree(const_cast<void*>(address)));
    }
  }

  static void Flush(TestCache& cache) {
    cache->Close();
    cache->Flush();
    cache->Open();
  }

  // The thread ends and another begins.
  void Restart(size_t i) {
    (*caches_[i])->Retire();
    caches_[i] = std::make_unique<TestCache>(sources_);
  }

  TestSources sources_;
  uint64_t failures_ = 0;
  std::array<std::unique_ptr<TestCache>, 3> caches_;
  StampedBlocks blocks_;  // in use
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_
