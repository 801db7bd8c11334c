// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/exit_check.h"

#include <cstddef>
#include <cstdint>

#include "central/free_objects.h"
#include "heap/heap.h"

namespace tcmalloc {
namespace {

// Each object may cost a cache miss or two, all of them less than a millisecond.
constexpr size_t kMostObjects = 3072;
// Most of them are only counted.
constexpr size_t kMostSpans = 2048;
// Each may cost two page faults.
constexpr size_t kMostFreshSpans = 8;

void CheckArray(FreeObjectCheck& check, ObjectArray array) {
  for (uint32_t i = 0; i < array.count; ++i) {
    check.CheckNamed(array.objects[i], heap.cpus().LooksFree(array.objects[i]));
  }
}

void CheckTransfer(uint8_t c, Transfer& transfer, size_t* most) {
  FreeObjectCheck check(heap.page_map(), heap.codec(), c, most);
  transfer.TryForEachChain([&](PackedChain chain) {
    if (chain.is_array()) {
      CheckArray(check, chain.UnpackArray());
    } else {
      check.CheckList(chain.Unpack().head);
    }
    return !check.done();
  });
}

// Checks both ends of memory that was never used. Returns true if all memory that reads as zero is
// such. Other memory may have been protected by the program before it freed it.
bool CheckFreshSpans() {
  // To read a hole in a file takes a page, and is a fault if there is none.
  if (heap.memory().HasFile()) return false;
  size_t most = kMostFreshSpans;
  return heap.page_heap().ForEachFreshSpan(kMostSpans, [&most](const Span& span) {
    if (most == 0) return;
    --most;
    CheckUntouched(heap.codec(), span.start());
    CheckUntouched(heap.codec(), span.start() + span.bytes() - sizeof(uint64_t));
  });
}

// The objects that were freed last come first.
void CheckFreeObjects(Entry entry) {
  size_t most = kMostObjects;
  Cache* own = Threads<SizeClassLists>::CacheOf(entry);
  if (own != nullptr) own->CheckFreeObjects(&most);
  heap.cpus().CheckFreeObjects(&most);
  heap.caches().CheckSpares(&most);
  const bool fresh = CheckFreshSpans();
  heap.lists().ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
    CheckTransfer(c, transfer, &most);
    central.CheckFreeObjects(fresh, &most);
  });
}

// Returns true if other processes may write to the heap: children of fork share memory that comes
// from a file, and what they write there is no mistake.
bool SharesMemory(const Options& options) {
  return heap.memory().HasFile() && (options.devmem_start != 0 || !options.memfs_map_private);
}

}  // namespace

// Calls the kernel for nothing, because the program may have forbidden it any call but exit_group,
// and does not wait for locks, because the program may have stopped the threads that hold them. So
// this is no SlowPath, whose end may do other work.
void CheckFreeObjectsAtExit() {
  if (!heap.initialized()) return;
  const Options& options = heap.options();
  if (!options.exit_check || SharesMemory(options)) return;
  const Entry entry = EnterSlowPath();
  if (entry != Entry::kReentrant) CheckFreeObjects(entry);
  LeaveSlowPath(entry);
}

}  // namespace tcmalloc
