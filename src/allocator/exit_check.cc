// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/exit_check.h"

#include <cstddef>
#include <cstdint>

#include "allocator/slow_path.h"
#include "central/free_objects.h"
#include "heap/heap.h"

namespace tcmalloc {
namespace {

// Each object may cost a cache miss or two, all of them less than two milliseconds.
constexpr size_t kMostObjects = 16384;
// Each may cost two page faults.
constexpr size_t kMostSpans = 32;

void CheckArray(FreeObjectCheck& check, ObjectArray array) {
  for (uint32_t i = 0; i < array.count; ++i) {
    check.CheckNamed(array.objects[i], heap.cpus().LooksFree(array.objects[i]));
  }
}

void CheckTransfer(uint8_t c, Transfer& transfer, size_t* most) {
  FreeObjectCheck check(heap.page_map(), heap.codec(), c, most);
  transfer.ForEachChain([&](PackedChain chain) {
    if (chain.is_array()) {
      CheckArray(check, chain.UnpackArray());
    } else {
      check.CheckList(chain.Unpack().head);
    }
  });
}

// Checks both ends of free spans that are known to be zero.
void CheckFreeSpans() {
  size_t most = kMostSpans;
  heap.page_heap().ForEachSpan([&most](const Span& span) {
    const Span::State state = span.state;
    const bool free = state == Span::State::kFree || state == Span::State::kReturned;
    if (!free || !span.zeroed || most == 0) return;
    --most;
    CheckUntouched(span.start());
    CheckUntouched(span.start() + span.bytes() - sizeof(uint64_t));
  });
}

}  // namespace

void CheckFreeObjectsAtExit() {
  if (!heap.initialized()) return;
  const SlowPath slow_path{SlowPath::Patient()};
  if (slow_path.reentrant()) return;
  // The objects that were freed last come first.
  size_t most = kMostObjects;
  slow_path.CheckOwnCache(&most);
  heap.cpus().CheckFreeObjects(&most);
  heap.caches().CheckSpares(&most);
  heap.lists().ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
    CheckTransfer(c, transfer, &most);
    central.CheckFreeObjects(&most);
  });
  CheckFreeSpans();
}

}  // namespace tcmalloc
