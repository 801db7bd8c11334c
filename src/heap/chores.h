// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The heap as housekeeping sees it.

#ifndef TCMALLOC_HEAP_CHORES_H_
#define TCMALLOC_HEAP_CHORES_H_

#include <cstddef>
#include <cstdint>

#include "upkeep/housekeeping.h"

namespace tcmalloc {

class Heap;

class Chores final : public HousekeepingHost {
 public:
  constexpr explicit Chores(Heap& heap) : heap_(heap) {}
  Chores(const Chores&) = delete;
  Chores& operator=(const Chores&) = delete;

  size_t CountThreadCaches() override;
  void ReturnIdleOfThreads(size_t count, ThreadHeader* own) override;
  void ReturnIdleOfCpus() override;
  void ReturnUnused(SourceTurns& turns, uint32_t count) override;
  size_t FullBytes(ThreadHeader* own) override;
  void ReturnLargeObjects(ThreadHeader* own) override;
  bool RefreshLimits(int64_t now, Limits::Reader reader) override;
  bool FollowsCgroup() override;
  bool IsAwaited() override;

 private:
  Heap& heap_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_CHORES_H_
