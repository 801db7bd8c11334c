// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/allocate.h"

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/allocated_size.h"
#include "allocator/block_functions.h"
#include "allocator/slow_path.h"
#include "base/message.h"
#include "heap/observer.h"
#include "hook/hooks.h"

namespace tcmalloc {
namespace {

// The alignment of every object whose program asks for none. Smaller objects are aligned to their
// own size.
constexpr size_t kMinAlignment = 16;

// Calls allocate(), for n adjacent pages or, where n is 0, for an object. After a failure calls it
// again if that may help: when every free object that this thread can reach has gone back to its
// span, and every empty span to the page heap. If the heap's limit was the obstacle, the page heap
// then gives back as much as it needs to.
template <typename F>
auto WithLastResort(const SlowPath& slow_path, Length n, F allocate) {
  auto result = allocate();
  if (TCMALLOC_UNLIKELY(result == nullptr) && slow_path.ShedFor(n)) result = allocate();
  slow_path.FollowLimits();
  return result;
}

// Allocates an object of class `c` in a slow path that is not reentrant.
TCMALLOC_ALWAYS_INLINE void* AllocateWithin(const SlowPath& slow_path, uint8_t c, size_t size,
                                            size_t alignment) {
  void* object =
      WithLastResort(slow_path, Length(0), [&] { return slow_path.AllocateObject(c, size); });
  const DrawnPeriod period = slow_path.TakeSample(size);
  if (TCMALLOC_LIKELY(period == 0)) return object;
  return slow_path.MoveSample(object, c, {size, alignment, period});
}

// Allocates when the fast path did not. A block of the emergency arena is as large as any other,
// and never a sample.
void* AllocateSmall(uint8_t c, size_t size, size_t alignment) {
  SlowPath slow_path;
  if (slow_path.reentrant()) {
    return heap.emergency().Allocate(kSizeClasses[c].size, std::max(alignment, kMinAlignment));
  }
  return AllocateWithin(slow_path, c, size, alignment);
}

// Allocates from the cache of a CPU, if one serves the thread, sizes that its fast path does not
// look up.
void* TryAllocateFromCpu(FastThread thread, uint8_t c, size_t size) {
  if (!thread->is_open_to_cpus()) return nullptr;
  return heap.cpus().TryAllocate(CpuThread::Of(thread.header()), c, size);
}

// Works as TryAllocateFromCpu, for a size that a fast path may have looked up in vain.
void* TryUnlistedFromCpu(uint8_t c, size_t size) {
  return size >= kClassBySize.size() ? TryAllocateFromCpu(current_thread, c, size) : nullptr;
}

// The largest request. No address space holds a larger block, so giving up memory would not help.
constexpr size_t kLargestRequest = size_t{1} << kAddressBits;

// If it is kToGrow, a block in a span of its own shall be able to grow where it is.
enum class Room : bool { kNone, kToGrow };

// Allocates a span for one block. `alignment` is 0 where none was asked for, as in all below.
Span* AllocateSpan(Length length, size_t alignment, Room room) {
  if (room == Room::kToGrow) return heap.page_heap().NewRoomy(length);
  return alignment <= kPageSize
             ? heap.page_heap().New(length)
             : heap.page_heap().NewAligned(length, Length::FromBytesCeil(alignment));
}

// A block in a span of its own, or in the emergency arena.
struct LargeBlock {
  void* start = nullptr;  // null if no memory can be had
  size_t bytes = 0;
  bool zeroed = false;
};

// Decides if the block in a span of its own is a sample.
void DrawLarge(Span* span, size_t size, size_t alignment) {
  const SampleDraw draw = heap.CountShared(span->bytes());
  span->SetSample(0, PointsIn(span->bytes(), draw.period));
  if (TCMALLOC_UNLIKELY(draw.is_sample)) RecordLargeSample(span, size, alignment);
}

TCMALLOC_COLD LargeBlock FindLargeInEmergency(size_t size, size_t alignment) {
  alignment = std::max(alignment, kMinAlignment);
  const size_t bytes = AllocatedSizeFor(size, alignment);
  return {heap.emergency().Allocate(bytes, alignment), bytes, false};
}

LargeBlock FindLarge(size_t size, size_t alignment, Room room) {
  SlowPath slow_path;
  if (slow_path.reentrant()) return FindLargeInEmergency(size, alignment);
  const Length length = std::max(Length::FromBytesCeil(size), Length(1));
  Span* span =
      WithLastResort(slow_path, length, [&] { return AllocateSpan(length, alignment, room); });
  if (span == nullptr) return {};
  heap.large_totals().AddBlock(span->bytes());
  DrawLarge(span, size, alignment);
  return {span->start(), span->bytes(), span->zeroed};
}

// Sets *zeroed to true if the bytes are known to be zero; `zeroed` may be null.
void* AllocateLarge(size_t size, size_t alignment, bool* zeroed, Room room = Room::kNone) {
  if (size > kLargestRequest || alignment > kLargestRequest) return nullptr;
  const LargeBlock block = FindLarge(size, alignment, room);
  if (zeroed != nullptr) *zeroed = block.zeroed;
  if (block.start != nullptr) ReportIfLarge(block.start, block.bytes);
  return block.start;
}

void* AllocateZeroedQuietly(size_t size) {
  bool zeroed = false;
  void* object = size <= kMaxSmallSize ? AllocateQuietly(size) : AllocateLarge(size, 0, &zeroed);
  if (object != nullptr && !zeroed) std::memset(object, 0, size);
  return object;
}

bool AllocationsAreWatched() { return TCMALLOC_UNLIKELY(!hooks.new_block.empty()); }

}  // namespace

constinit const BlockFunctions* block_functions = nullptr;

void EnterMode(const BlockFunctions& functions) {
  heap.page_map().HideNearEntries();
  block_functions = &functions;
}

void* AllocateAfterTry(size_t size, FastLists* lists, AllocateSlowPath slow) {
  Cache::Of(lists)->UndoTryAllocate(kClassBySize[size]);
  return slow(size);
}

// Prints the message that gperftools prints, because people search for it.
void ReportLarge(const void* block, size_t bytes) {
  if (!heap.large_reports().IsDue(bytes)) return;
  Message message;
  message << "large alloc " << uint64_t{bytes} << " bytes == " << block << " @";
  constexpr int kMostCallers = 20;
  void* callers[kMostCallers];
  const int count = CaptureCallerOfHook(callers, kMostCallers, 0);
  for (int i = 0; i < count; ++i) message << " " << callers[i];
  Notify(message);
}

void* AllocateUnreported(size_t size) {
  if (TCMALLOC_UNLIKELY(size > kMaxSmallSize)) return AllocateLarge(size, 0, nullptr);
  const uint8_t c = SizeClassFor(size);
  if (void* object = TryUnlistedFromCpu(c, size)) return object;
  return AllocateSmall(c, size, 0);
}

TCMALLOC_NOINLINE void* AllocateQuietly(size_t size) {
  return AllocateOr<AllocateUnreported>(size);
}

TCMALLOC_NOINLINE void* TryAllocateQuietly(size_t size) {
  return AllocateOr<TryAllocateSmall>(size);
}

void* AllocateRoomy(size_t size) {
  TCMALLOC_DCHECK(size > kMaxSmallSize);
  return AllocateLarge(size, 0, nullptr, Room::kToGrow);
}

void* AllocateSmallWithin(const SlowPath& slow_path, size_t size) {
  TCMALLOC_DCHECK_LE(size, kMaxSmallSize);
  return AllocateWithin(slow_path, SizeClassFor(size), size, 0);
}

void* TryAllocateSmall(size_t size) {
  TCMALLOC_DCHECK_LE(size, kMaxSmallSize);
  const uint8_t c = SizeClassFor(size);
  if (void* object = TryUnlistedFromCpu(c, size)) return object;
  SlowPath slow_path;
  if (slow_path.reentrant()) return nullptr;
  void* object = slow_path.AllocateObject(c, size);
  slow_path.FollowLimits();
  const DrawnPeriod period = slow_path.TakeSample(size);
  return TCMALLOC_LIKELY(period == 0) ? object : slow_path.MoveSample(object, c, {size, 0, period});
}

void* AllocateSlow(size_t size) {
  if (AllocationsAreWatched()) return ReportNew(AllocateUnreported(size), size);
  return AllocateUnreported(size);
}

// Reads the thread once, because a signal handler may move it to its other front end.
void* AllocateAlignedOr(size_t size, size_t alignment, AlignedSlowPath slow) {
  const FastThread thread = entry_threads.plain;
  const uint8_t c = thread->closed() ? 0 : SizeClassForAligned(size, alignment);
  if (TCMALLOC_UNLIKELY(c == 0)) return slow(size, alignment);
  void* object = Cache::Of(thread.lists())->AllocateListed(c, size);
  return TCMALLOC_LIKELY(object != nullptr) ? object : slow(size, alignment);
}

void* AllocateAlignedUnreported(size_t size, size_t alignment) {
  if (alignment <= sizeof(void*)) return AllocateQuietly(size);
  const uint8_t c = SizeClassForAligned(size, alignment);
  if (TCMALLOC_UNLIKELY(c == 0)) return AllocateLarge(size, alignment, nullptr);
  if (void* object = TryAllocateFromCpu(current_thread, c, size)) return object;
  return AllocateSmall(c, size, alignment);
}

void* AllocateAligned(size_t size, size_t alignment) {
  if (AllocationsAreWatched()) return ReportNew(AllocateAlignedUnreported(size, alignment), size);
  return AllocateAlignedUnreported(size, alignment);
}

void* AllocateLargeUnreported(size_t size, size_t alignment, bool* zeroed) {
  return AllocateLarge(size, alignment, zeroed);
}

void* AllocateZeroedSmall(size_t size) {
  void* object = AllocateSlow(size);
  return object != nullptr ? std::memset(object, 0, size) : nullptr;
}

void* AllocateZeroed(size_t size) {
  if (AllocationsAreWatched()) return ReportNew(AllocateZeroedQuietly(size), size);
  return AllocateZeroedQuietly(size);
}

}  // namespace tcmalloc
