// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A few thread caches that share their sources and exchange objects, beside a model of them: a set
// of objects. See replay.h.

#ifndef TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "model/replay.h"
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
    kFail
  };
  static constexpr const char* kNames[] = {"kAllocate", "kAllocateMany", "kFree",
                                           "kFreeMany", "kRefused",      "kCollect",
                                           "kFlush",    "kRestart",      "kFail"};

  ThreadCacheMachine(Window window, size_t budget) : sources_(window) {
    sources_.budget.SetTotal(budget);
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      sources_.sources[c].fail = [this] { return failures_ > 0 && failures_-- > 0; };
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
    for (const Block& block : blocks_) CheckStamp(block);
  }

  void Finish() {
    while (!blocks_.empty()) Free(*caches_[0], 0, 1);
    for (auto& cache : caches_) (*cache)->Retire();
    ASSERT_EQ(sources_.ObjectsOut(), 0u);
    sources_.budget.CheckInvariants();
  }

 private:
  struct Block {
    uint64_t* object;
    uint8_t size_class;
  };

  // A few classes, so that their lists grow.
  static uint8_t PickClass(uint64_t pick) {
    constexpr size_t kSizes[] = {8, 16, 64, 64, 64, 400, 2048, 2048, 16384, kMaxSmallSize};
    return SizeClassFor(kSizes[pick % std::size(kSizes)]);
  }

  static void CheckStamp(const Block& block) {
    const auto value = reinterpret_cast<uint64_t>(block.object);
    ASSERT_EQ(block.object[0], value);
    ASSERT_EQ(block.object[kSizeClasses[block.size_class].size / 8 - 1], value);
  }

  void Allocate(TestCache& cache, uint64_t pick, uint64_t count) {
    const uint8_t c = PickClass(pick);
    for (; count > 0; --count) {
      auto* object = static_cast<uint64_t*>(cache.Allocate(c));
      if (object == nullptr) continue;
      const Span* span = sources_.space.map->FindInUse(object);
      ASSERT_NE(span, nullptr);
      ASSERT_EQ(span->size_class, c);
      const auto value = reinterpret_cast<uint64_t>(object);
      object[0] = object[kSizeClasses[c].size / 8 - 1] = value;
      blocks_.push_back({object, c});
    }
  }

  void Free(TestCache& cache, uint64_t pick, uint64_t count) {
    for (; count > 0 && !blocks_.empty(); --count) {
      std::swap(blocks_[pick % blocks_.size()], blocks_.back());
      const Block block = blocks_.back();
      blocks_.pop_back();
      CheckStamp(block);
      cache.Free(block.object);
    }
  }

  // Frees that the fast path must refuse, whatever the state of the cache.
  void Refused(TestCache& cache, uint64_t pick) {
    if (blocks_.empty()) return;
    const char* object = reinterpret_cast<char*>(blocks_[pick % blocks_.size()].object);
    for (const void* address :
         {static_cast<const void*>(object + 1 + pick % 7), static_cast<const void*>(nullptr),
          static_cast<const void*>(this),
          reinterpret_cast<const void*>(pick | FakeWindow::kEndOfUserSpace)}) {
      ASSERT_FALSE(cache->TryFree(const_cast<void*>(address)));
      cache->UndoTryFree(address);
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
  std::vector<Block> blocks_;  // in use
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_THREAD_CACHE_MACHINE_H_
