// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/exit_check.h"

#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "allocator/slow_path.h"
#include "central/free_objects.h"
#include "heap/heap.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Each object may cost a cache miss or two, all of them less than a millisecond.
constexpr size_t kMostObjects = 3072;
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

// Returns true unless the program has protected the word, which must not end it.
bool IsReadable(const void* word) {
  // No operation has this number, but the kernel reads the set of signals first.
  constexpr int kNoOperation = -1;
  errno = 0;
  system_calls.rt_sigprocmask(kNoOperation, static_cast<const uint64_t*>(word), nullptr);
  return errno != EFAULT;
}

void CheckZero(const void* word) {
  if (IsReadable(word)) CheckUntouched(word);
}

// Checks both ends of free spans that are known to be zero.
void CheckFreeSpans() {
  size_t most = kMostSpans;
  heap.page_heap().ForEachSpan([&most](const Span& span) {
    const Span::State state = span.state;
    const bool free = state == Span::State::kFree || state == Span::State::kReturned;
    if (!free || !span.zeroed || most == 0) return;
    --most;
    CheckZero(span.start());
    CheckZero(span.start() + span.bytes() - sizeof(uint64_t));
  });
}

// Returns true if other processes may write to the heap: children of fork share memory that comes
// from a file, and what they write there is no mistake.
bool SharesMemory(const Options& options) {
  return options.devmem_limit != 0 ||
         (!options.memfs_malloc_path.empty() && !options.memfs_map_private);
}

}  // namespace

void CheckFreeObjectsAtExit() {
  if (!heap.initialized()) return;
  const Options& options = heap.options();
  if (!options.exit_check || SharesMemory(options)) return;
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
