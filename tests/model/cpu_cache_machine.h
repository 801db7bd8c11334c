// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A few threads that move between the caches of a few CPUs, beside a model of them: a set of
// objects. See replay.h. Requires that Support() says kUsable.

#ifndef TCMALLOC_TESTS_MODEL_CPU_CACHE_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_CPU_CACHE_MACHINE_H_

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <memory>

#include "model/replay.h"
#include "model/stamped_blocks.h"
#include "unit/cache/per_cpu/test_cpu_cache.h"

namespace tcmalloc::testing {

class CpuCacheMachine {
 public:
  enum Op : unsigned {
    kAllocate,
    kAllocateMany,
    kFree,
    kFreeMany,
    kMigrate,
    kMigrateInside,
    kFlush,
    kRestart,
    kFailSource,
    kGenerous,
    kRefuseFences
  };
  static constexpr const char* kNames[] = {
      "kAllocate", "kAllocateMany", "kFree",       "kFreeMany", "kMigrate",     "kMigrateInside",
      "kFlush",    "kRestart",      "kFailSource", "kGenerous", "kRefuseFences"};

  CpuCacheMachine(CpuIds ids, size_t bytes_per_cpu) : ids_(ids), cpus_(ids, kCpus, bytes_per_cpu) {
    TestFence::Reset();
    TestFence::real = false;
    for (size_t c = 1; c < kSizeClassCount; ++c) {
      cpus_.sources.at(c).fail = [this] { return Interrupt(); };
      cpus_.sources.at(c).has_lines = true;
      cpus_.sources.at(c).keeps_arrays = c % 2 == 0;
    }
    for (size_t i = 0; i < kThreads; ++i) Restart(i);
  }
  ~CpuCacheMachine() { TestFence::Reset(); }
  CpuCacheMachine(const CpuCacheMachine&) = delete;
  CpuCacheMachine& operator=(const CpuCacheMachine&) = delete;

  void Do(const Action& action) {
    current_ = action.a % kThreads;
    switch (action.op) {
      case kAllocate:
        return Allocate(action.b, 1);
      case kAllocateMany:
        return Allocate(action.b, 1 + action.a / 8 % 300);
      case kFree:
        return Free(action.b, 1);
      case kFreeMany:
        return Free(action.b, 1 + action.a / 8 % 300);
      case kMigrate:
        return Migrate(action.b);
      case kMigrateInside:
        inside_ = static_cast<int>(1 + action.b % kCpus);
        return;
      case kFlush:
        return Flush();
      case kRestart:
        return Restart(current_);
      case kFailSource:
        failures_ = action.b % 4;
        return;
      case kGenerous:
        cpus_.source(PickClass(action.b)).more = static_cast<uint32_t>(action.a / 8 % 300);
        return;
      case kRefuseFences:
        TestFence::refused = static_cast<int>(action.b % 4);
    }
  }

  void CheckAll() {
    cpus_.cache.CheckInvariants();
    ASSERT_EQ(cpus_.ObjectsOut(), blocks_.size() + cpus_.CachedObjects());
    ASSERT_EQ(cpus_.cache.stats().threads, kThreads);
    ASSERT_EQ(cpus_.cache.stats().allocated.bytes, allocated_bytes_);
    blocks_.Check();
  }

  void Finish() {
    while (!blocks_.empty()) Free(0, 1);
    TestFence::refused = 0;
    Flush();
    ASSERT_EQ(cpus_.ObjectsOut(), 0u);
  }

 private:
  static constexpr int kCpus = 3;
  static constexpr size_t kThreads = 2;

  // A few classes, so that each holds many objects and takes capacity from the others.
  static uint8_t PickClass(uint64_t pick) {
    constexpr size_t kSizes[] = {8, 16, 64, 64, 64, 400, 1024, 2048, 16384, kMaxSmallSize};
    return SizeClassFor(kSizes[pick % std::size(kSizes)]);
  }

  // In the middle of a refill: whether it fails, and where it goes on.
  bool Interrupt() {
    if (inside_ > 0) Migrate(static_cast<uint64_t>(inside_ - 1));
    inside_ = 0;
    return failures_ > 0 && failures_-- > 0;
  }

  void Migrate(uint64_t pick) {
    RseqArea& area = areas_[current_];
    (ids_ == CpuIds::kMmCid ? area.mm_cid : area.cpu_id) = static_cast<uint32_t>(pick % kCpus);
  }

  void Allocate(uint64_t pick, uint64_t count) {
    const uint8_t c = PickClass(pick);
    for (; count > 0; --count) {
      auto* object = static_cast<uint64_t*>(threads_[current_]->Allocate(c));
      if (object == nullptr) continue;
      allocated_bytes_ += kSizeClasses[c].size;
      ASSERT_EQ(object[0], 0u);
      blocks_.Add(object, c, *cpus_.space.map);
    }
  }

  void Free(uint64_t pick, uint64_t count) {
    for (; count > 0 && !blocks_.empty(); --count) {
      threads_[current_]->Free(blocks_.Take(pick));
    }
  }

  // With every fence granted nothing is left, whatever was refused before.
  void Flush() {
    const bool granted = TestFence::refused == 0;
    cpus_.cache.Flush();
    if (!granted) return;
    ASSERT_EQ(cpus_.CachedObjects(), 0u);
    ASSERT_EQ(cpus_.ObjectsOut(), blocks_.size());
  }

  // The thread ends and another begins.
  void Restart(size_t i) {
    threads_[i].reset();
    threads_[i] = std::make_unique<TestCpuThread>(cpus_, &areas_[i]);
    ASSERT_NE(threads_[i]->thread(), nullptr);
  }

  const CpuIds ids_;
  TestCpus cpus_;
  std::array<RseqArea, kThreads> areas_;
  std::array<std::unique_ptr<TestCpuThread>, kThreads> threads_;
  size_t current_ = 0;
  uint64_t failures_ = 0;  // of the sources that are still to come
  int inside_ = 0;         // one more than where the next refill migrates to
  uint64_t allocated_bytes_ = 0;
  StampedBlocks blocks_;  // in use
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_CPU_CACHE_MACHINE_H_
