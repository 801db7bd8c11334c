// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The part of HardenedHeap for blocks that wait after they were freed.

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "central/sampled_page.h"
#include "hardened/below_checks.h"
#include "hardened/guard_pages.h"
#include "hardened/hardened_heap.h"
#include "hardened/hardened_heap_inl.h"
#include "hardened/mistakes.h"
#include "hardened/span_return.h"
#include "hook/hooks.h"
#include "thread/thread_parts.h"
#include "thread/thread_state.h"

namespace tcmalloc {
namespace {

// Larger blocks give their pages back at once, and no place keeps their addresses.
constexpr size_t kLargestQuarantined = size_t{64} << 20;
// Blocks up to this may wait with their memory, all together with the second figure.
constexpr size_t kLargestFilled = size_t{1} << 20;
constexpr size_t kMostFilledBytes = size_t{4} << 20;

// Returns a block to the allocator below. The program's hooks know since it was freed.
TCMALLOC_ALWAYS_INLINE void ReturnBlock(void* block) {
  if (TCMALLOC_LIKELY(hooks.delete_block.empty())) return Deallocate(block);
  DeallocateUnreported(block);
}

// Fetches at most `wanted` objects, in the order of their addresses, from spans past all caches,
// because what leaves a pool goes there. Returns their number. `wanted` is kLineObjects or more.
size_t FetchObjects(size_t wanted, uint8_t size_class, void** objects) {
  static_assert(BlockPools::kFirstRun >= Central::kLineObjects);
  const SlowPath slow_path;
  if (TCMALLOC_UNLIKELY(slow_path.reentrant())) return 0;
  Transfer& transfer = heap.transfer(size_class);
  // Threads without a pool leave objects there that nobody may ever ask for.
  transfer.ReturnUnused();
  const size_t count = transfer.FetchArray(objects, static_cast<uint32_t>(wanted));
  slow_path.FollowLimits();
  std::reverse(objects, objects + count);
  return count;
}

}  // namespace

// Returns how many bytes of a block are filled when it is freed. The last byte stays the canary
// before the next block.
TCMALLOC_ALWAYS_INLINE size_t HardenedHeap::FilledSize(const LiveBlock& live) {
  return std::max(live.size, std::min(live.capacity - 1, kHeadFill));
}

void HardenedHeap::FreeSmall(char* block, const LiveBlock& live) {
  const size_t size = FilledSize(live);
  if (live.capacity > kMostFilled) BlockMap::KeepSize(map_.Known(block), size, live.capacity);
  FillFreed(block, size, live.capacity, zeroes_);
  // A handler that interrupted an exchange, or the allocator below, leaves its blocks to them.
  if (TCMALLOC_UNLIKELY(thread_state.is_below_checks())) return GiveBack(block);
  PutInQuarantine(block, live.size_class);
}

// Lets a small block wait that was filled. Others leave if there is no room.
void HardenedHeap::PutInQuarantine(char* block, uint8_t size_class) {
  const BelowChecks scope;
  if (!BlockPools::IsPool(scope.part()) || !BlockPools::HasClass(size_class)) {
    void* leaving = quarantine_.Exchange(scope.part(), block, size_class);
    if (leaving != nullptr) Leave(leaving, size_class);
    return;
  }
  BlockMap::MakePlain(map_.Known(block), size_class);
  // With room for a few alone, the next ones would soon come here, too.
  const size_t batch = pools_.Batch(scope.part(), size_class);
  if (pools_.FindRoom(scope.part(), size_class) >= batch &&
      pools_.TryAdd(scope.part(), block, size_class)) {
    return;
  }
  if (size_class <= SizeClassFor(kMostInFour)) {
    LeaveOldest<false>(scope.part(), size_class, batch);
  } else {
    LeaveOldest<true>(scope.part(), size_class, batch);
  }
  if (!pools_.TryAdd(scope.part(), block, size_class)) Leave(block, size_class);
}

// Gives the blocks of a queue that wait longest to their spans, within BelowChecks.
template <bool kIsLong>
void HardenedHeap::LeaveOldest(uint8_t part, uint8_t size_class, size_t most) {
  SpanReturn going(size_class);
  using Facts = BlockPools::Facts;
  const auto leave = [&](void* block, const Facts& facts) __attribute__((always_inline)) {
    auto* start = static_cast<char*>(block);
    const bool is_as_left = ArePairsFilled<kIsLong>(start, facts.pairs, filling_);
    if (TCMALLOC_UNLIKELY(!is_as_left)) CheckFreed(block, size_class);
    // Release pairs with the acquire in CheckLive.
    map_.Known(block)->store(BlockMap::kFree, std::memory_order_release);
    going.Add(block);
  };
  pools_.TakeOldest(part, size_class, most, leave);
}

// Gives a small block that waited to the allocator below, within BelowChecks.
void HardenedHeap::Leave(void* block, uint8_t size_class) {
  const size_t bytes = kSizeClasses[size_class].size;
  const bool is_as_left =
      bytes <= kMostFilled && IsFilledWhole(static_cast<char*>(block), bytes, filling_);
  if (TCMALLOC_UNLIKELY(!is_as_left)) CheckFreed(block, size_class);
  // Release pairs with the acquire in CheckLive.
  map_.Known(block)->store(BlockMap::kFree, std::memory_order_release);
  ReturnBlock(block);
}

void HardenedHeap::LeaveAsSample(void* block, uint8_t size_class) { Leave(block, size_class); }

// Makes the group from which the next block of `size` bytes comes, if it is empty. Returns false if
// there is none, because the thread has no pool or there are no blocks for it.
bool HardenedHeap::PrepareTurn(size_t size) {
  const uint8_t part = thread_state.quarantine_part;
  if (size >= BlockPools::kLargest || !BlockPools::IsPool(part)) return false;
  const uint8_t size_class = kPlainClasses[size];
  const BelowChecks scope(part);
  return pools_.Next(part, size_class).has_come() || PrepareGroup(part, size_class);
}

// Returns a block that waited in the thread's pool, within BelowChecks, or null.
char* HardenedHeap::TakeWaiting(uint8_t part, uint8_t size_class) {
  if (!BlockPools::IsPool(part) || !BlockPools::HasClass(size_class)) return nullptr;
  EventClock& clock = current_thread->clock;
  const size_t capacity = kSizeClasses[size_class].size;
  if (clock.WouldExpire(capacity)) return nullptr;
  if (!pools_.Next(part, size_class).has_come() && !PrepareGroup(part, size_class)) return nullptr;
  const BlockPools::Turn turn = pools_.Next(part, size_class);
  auto* start = static_cast<char*>(turn.block());
  if (turn.is_filled()) CheckFreed(start, size_class);
  turn.Take();
  clock.Advance(capacity);
  return start;
}

// Makes the group of the pool that goes next. Returns false if there are no blocks for it.
bool HardenedHeap::PrepareGroup(uint8_t part, uint8_t size_class) {
  NoteGroup();
  return TakeGroup(part, size_class) || TakeRun(part, size_class);
}

// Makes a group of the blocks that wait longest, if enough may go: the order of few is no secret.
// Samples leave, because the allocator below wants to see them. Returns false if there is no group.
bool HardenedHeap::TakeGroup(uint8_t part, uint8_t size_class) {
  const size_t group = pools_.GroupSize(part, size_class);
  if (pools_.MayGo(part, size_class) < group) return false;
  const uintptr_t limit = heap.page_map().window_limit();
  const auto leaves = [&](void* block) {
    if (TCMALLOC_LIKELY(reinterpret_cast<uintptr_t>(block) < limit) &&
        TCMALLOC_LIKELY(heap.page_map().ClassBelowLimit(PageId::Containing(block)) == size_class)) {
      return false;
    }
    LeaveAsSample(block, size_class);
    return true;
  };
  return pools_.MakeGroup(part, size_class, group, leaves);
}

// Makes a group of objects that come from spans. Returns false if there are none.
bool HardenedHeap::TakeRun(uint8_t part, uint8_t size_class) {
  const size_t capacity = kSizeClasses[size_class].size;
  void* objects[BlockPools::kRun];
  size_t count = FetchObjects(pools_.MostInRun(part, size_class), size_class, objects);
  for (size_t i = 0; i < count; ++i) {
    BlockMap::Byte* state = map_.Ensure(objects[i]);
    if (TCMALLOC_UNLIKELY(state == nullptr)) {
      while (count > i) DeallocateUnreported(objects[--count]);
      break;
    }
    BlockMap::MakeNew(state, size_class);
    LinkWord(objects[i]) = 0;
    // It is the front of the next one, which is in the group as a rule.
    canary_.WriteLast(static_cast<char*>(objects[i]), capacity);
  }
  for (size_t i = 0; i < count; ++i) {
    auto* object = static_cast<char*>(objects[i]);
    if (TCMALLOC_UNLIKELY(!HasFront(object))) GuardFront(object, capacity);
  }
  pools_.MakeRun(part, size_class, objects, count);
  return count != 0;
}

// Returns the first byte of a small block in quarantine that was written, or null.
const char* HardenedHeap::FindDamage(const void* block, uint8_t size_class) const {
  const auto* start = static_cast<const char*>(block);
  const size_t bytes = kSizeClasses[size_class].size;
  size_t size = bytes - 1;
  if (bytes > kMostFilled) size = BlockMap::KeptSize(map_.Known(block), bytes);
  const char* damage = FindWrittenFreed(start, size, bytes, zeroes_);
  if (TCMALLOC_UNLIKELY(damage != nullptr)) return damage;
  // The canary before the next block, which is as much no one's as before.
  const char* last = start + bytes - 1;
  return TCMALLOC_LIKELY(canary_.IsIntact(last)) ? nullptr : last;
}

// Checks that nobody wrote to a small block since it was freed.
void HardenedHeap::CheckFreed(const void* block, uint8_t size_class) const {
  const char* damage = FindDamage(block, size_class);
  if (TCMALLOC_LIKELY(damage == nullptr)) return;
  CrashOnWriteAfterFree(block, kSizeClasses[size_class].size, damage);
}

// Returns a block to the allocator below.
void HardenedHeap::GiveBack(void* block) {
  // Release pairs with the acquire in CheckLive.
  map_.Known(block)->store(BlockMap::kFree, std::memory_order_release);
  if (TCMALLOC_UNLIKELY(thread_state.is_below_checks())) return heap.deferred().Push(block);
  const BelowChecks scope;
  ReturnBlock(block);
}

// Lets a large block wait: without memory and access, or filled at its ends as a small one.
void HardenedHeap::FreeLarge(char* block, LiveBlock live) {
  Unguard(block, live);
  const size_t bytes = heap.page_map().Get(PageId::Containing(block))->bytes();
  if (zeroes_) ZeroPages(block, bytes);
  if (bytes > kLargestQuarantined) return GiveBack(block);
  // The time for a block that is zeroed, which loses its pages anyway, is the program's own wish.
  const GuardKind kind = zeroes_ ? ForbidPages(block, bytes) : ForbidWithin(block, bytes, 2, bytes);
  if (kind == GuardKind::kNone && (zeroes_ || !KeepFilled(block, live, bytes))) {
    return GiveBack(block);
  }
  const uint64_t random = NextRandom(large_random_.load(std::memory_order_relaxed));
  large_random_.store(random, std::memory_order_relaxed);
  map_.Known(block)[1].store(static_cast<uint8_t>(kind), std::memory_order_relaxed);
  // Acquire-release pairs with FreeLarge of another block: it is ready when it comes out.
  void* leaving = large_[random % kMostLarge].exchange(block, std::memory_order_acq_rel);
  if (leaving != nullptr) EvictLarge(leaving);
}

// Fills a large block, and keeps its size for the check. Others leave if too many wait. Returns
// false if it is too large.
bool HardenedHeap::KeepFilled(char* block, const LiveBlock& live, size_t bytes) {
  if (bytes > kLargestFilled) return false;
  const size_t first = large_random_.load(std::memory_order_relaxed) >> 32;
  for (size_t i = 0; i < kMostLarge; ++i) {
    if (filled_bytes_.load(std::memory_order_relaxed) + bytes <= kMostFilledBytes) break;
    // Acquire-release pairs with the exchange in FreeLarge.
    void* leaving = large_[(first + i) % kMostLarge].exchange(nullptr, std::memory_order_acq_rel);
    if (leaving != nullptr) EvictLarge(leaving);
  }
  if (filled_bytes_.fetch_add(bytes, std::memory_order_relaxed) + bytes > kMostFilledBytes) {
    filled_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
    return false;
  }
  size_t size = FilledSize(live);
  if (!BlockMap::CanHold(size, bytes)) size = bytes - 1;
  BlockMap::KeepSize(map_.Known(block), size, bytes);
  FillFreed(block, size, bytes, /*zeroes=*/false);
  return true;
}

// Makes a large block accessible again, or checks it, and gives it back. It stays as it is for ever
// if the kernel refuses.
void HardenedHeap::EvictLarge(void* block) {
  const auto kind = static_cast<GuardKind>(map_.Known(block)[1].load(std::memory_order_relaxed));
  const size_t bytes = heap.page_map().Get(PageId::Containing(block))->bytes();
  if (kind == GuardKind::kNone) {
    const size_t size = BlockMap::KeptSize(map_.Known(block), bytes);
    const char* damage = FindWrittenFreed(static_cast<char*>(block), size, bytes, false);
    if (TCMALLOC_UNLIKELY(damage != nullptr)) CrashOnWriteAfterFree(block, bytes, damage);
    filled_bytes_.fetch_sub(bytes, std::memory_order_relaxed);
  }
  if (AllowPages(block, bytes, kind)) GiveBack(block);
}

// Takes any block out of a pool that this thread has taken. Null if there is none.
void* HardenedHeap::TakeFromPool(uint8_t part) {
  const BelowChecks scope;
  return pools_.TakeAny(part);
}

uint8_t HardenedHeap::ClassOfWaiting(const void* block) {
  const Span* span = heap.page_map().Get(PageId::Containing(block));
  return span != nullptr ? ClassOfObject(span, block) : 0;
}

// Returns true if a block was freed. New objects that wait are not filled.
bool HardenedHeap::WasFreed(const void* block) const {
  return map_.Known(block)->load(std::memory_order_relaxed) == BlockMap::kQuarantined;
}

// Gives all blocks that this thread may take out of the quarantine to the allocator below: its own,
// those that ended threads left, and those that are shared. Returns false if there are none.
bool HardenedHeap::EmptyQuarantine() {
  bool is_any = false;
  const auto give_back = [&](void* block) {
    is_any = true;
    if (WasFreed(block)) CheckFreed(block, ClassOfWaiting(block));
    GiveBack(block);
  };
  const auto empty = [&](uint8_t part) {
    quarantine_.TakeEach(part, give_back);
    while (void* block = TakeFromPool(part)) give_back(block);
  };
  const uint8_t own = thread_state.quarantine_part;
  if (ThreadParts::IsPart(own)) empty(own);
  for (uint8_t part = 1; part <= thread_parts.highest(); ++part) {
    if (!thread_parts.TryTakeLeft(part)) continue;
    empty(part);
    thread_parts.Return(part);
  }
  quarantine_.TakeEachShared(give_back);
  for (std::atomic<void*>& place : large_) {
    if (place.load(std::memory_order_relaxed) == nullptr) continue;
    // Acquire-release pairs with the exchange in FreeLarge.
    void* block = place.exchange(nullptr, std::memory_order_acq_rel);
    if (block == nullptr) continue;
    is_any = true;
    EvictLarge(block);
  }
  return is_any;
}

// Empties the quarantine where there is no memory for a request. Returns false if it is no use to
// try again: a request for more than the whole heap has needs other memory.
bool HardenedHeap::GiveUpWaiting(size_t size) {
  if (thread_state.is_below_checks() || size > heap.page_heap().total().bytes()) return false;
  return EmptyQuarantine();
}

// Empties what this thread may, and looks at the rest if it is alone.
void HardenedHeap::CheckQuarantine() {
  EmptyQuarantine();
  if (heap.front_end().threads() > 1) return;
  // A thread whose front end is gone may free all the same. A block that it takes out is filled no
  // more, and a block that it puts in is, so two looks at the same block in the same place tell the
  // truth.
  const auto look = [&](const void* block, auto is_there) {
    const uint8_t size_class = ClassOfWaiting(block);
    if (size_class == 0 || !WasFreed(block)) return;
    for (int looks = 0; looks < 2; ++looks) {
      if (FindDamage(block, size_class) == nullptr || !is_there()) return;
    }
    CheckFreed(block, size_class);
  };
  const uint8_t own = thread_state.quarantine_part;
  quarantine_.LookAtOthers(own, look);
  pools_.LookAtOthers(own, look);
}

}  // namespace tcmalloc
