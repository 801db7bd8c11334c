// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/debug_heap.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "allocator/allocate.h"
#include "allocator/allocated_size.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "base/bits.h"
#include "debug/block_checks.h"
#include "debug/fences.h"
#include "debug/page_fence.h"
#include "debug/recent_stacks.h"
#include "debug/trace.h"
#include "hook/hooks.h"
#include "pages/page_types.h"
#include "size_class/size_classes.h"
#include "unwind/readable_memory.h"

namespace tcmalloc {
namespace {

TCMALLOC_ALWAYS_INLINE uintptr_t ThisThread() {
#if defined(__x86_64__)
  // As pthread_self in glibc and in musl, without a call.
  return reinterpret_cast<uintptr_t>(__builtin_thread_pointer());
#else
  return static_cast<uintptr_t>(pthread_self());
#endif
}

constinit FreeQueue::Storage queue_storage = {};

void* AllocateInEmergency(const Request& request) {
  void* block = heap.emergency().Allocate(std::max<size_t>(request.size, 1),
                                          std::max(request.alignment, kPlainAlignment));
  if (block != nullptr && request.zeroed) std::memset(block, 0, request.size);
  return block;
}

// Allocates memory of any size for a block. Sets *is_zero to true if all of it is known to be.
void* AllocateBelow(size_t bytes, bool* is_zero) {
  *is_zero = false;
  if (bytes <= kMaxSmallSize) return AllocateUnreported(bytes);
  return AllocateLargeUnreported(bytes, 0, is_zero);
}

// Makes a block that is new in the table a live one. Returns where it begins. `is_zero` tells that
// all of its bytes are.
void* Fill(const Request& request, bool is_zero, BlockRecord* block) {
  WriteFences(*block);
  if (!request.zeroed) {
    FillBlock<kFreshByte>(*block);
  } else if (!is_zero) {
    std::memset(block->user, 0, block->size);
  }
  block->version.EndChange(BlockState::kLive);
  return block->user;
}

// Returns true if `block` has a seal that can be read, because it lies in a page of small blocks.
// The record of a block without one is in the table. Does not change while the block is there.
TCMALLOC_ALWAYS_INLINE bool HasReadableSeal(const void* block) {
  const void* seal = static_cast<const char*>(block) - kSealBytes;
  return TCMALLOC_LIKELY(reinterpret_cast<uintptr_t>(block) % kPlainAlignment == 0) &&
         heap.page_map().ClassAt(PageId::Containing(seal)) != 0;
}

}  // namespace

constinit DebugHeap debug_heap;

// Returns the record that the seal of a block names, which may be another block's by now; null if
// it names none. Brings what will be looked at into the cache.
TCMALLOC_ALWAYS_INLINE BlockRecord* DebugHeap::FindBySeal(const void* block) {
  if (TCMALLOC_UNLIKELY(!HasReadableSeal(block))) return nullptr;
  const Seal seal = Seal::Read(block);
  BlockRecord* record = seal.ClaimedRecord(block);
  if (TCMALLOC_UNLIKELY(!record_chunks.Hold(record))) return nullptr;
  __builtin_prefetch(record, 1);
  __builtin_prefetch(static_cast<const char*>(block) + seal.size);
  return record;
}

// Returns the record of the block that begins there, or null. Only mistakes need the search through
// all records: a block with a broken seal, or a pointer to no block. Called inside the slow path.
BlockRecord* DebugHeap::Find(const void* block) {
  BlockRecord* record = FindBySeal(block);
  if (TCMALLOC_LIKELY(record != nullptr && record->user == block)) return record;
  record = table_.Find(block);
  if (record != nullptr || !HasReadableSeal(block)) return record;
  for (BlockRecord* chunk = records_.first_chunk(); chunk != nullptr && record == nullptr;
       chunk = RecordStore::NextChunk(chunk)) {
    records_.ForEachIn(chunk, [&](BlockRecord& other) {
      if (other.user == block) record = &other;
    });
  }
  return record;
}

// Finds the size of a block where no lock may be taken, and where a realloc must not lose the
// contents of one whose record is in the table. Such a block may lie anywhere in its span, or in
// pages of its own, so the kernel is asked if its seal can be read. Returns false if that is
// broken.
bool DebugHeap::FindSizeBySeal(const void* block, size_t* size) {
  const uintptr_t user = reinterpret_cast<uintptr_t>(block);
  if (user % kPlainAlignment != 0 || !IsReadable(user - kSealBytes)) return false;
  const Seal seal = Seal::Read(block);
  const BlockRecord* record = seal.ClaimedRecord(block);
  if (!record_chunks.Hold(record)) {
    *size = seal.size;
    return RecordStore::MayHold(record);
  }
  *size = record->size;
  return record->user == block && record->is_live();
}

// Calls f(record) for all blocks, under the locks of their records, until no lock may be taken or
// it returns false.
template <typename F>
void DebugHeap::ForEachBlock(F f) {
  bool more = true;
  for (BlockRecord* chunk = records_.first_chunk(); chunk != nullptr && more;
       chunk = RecordStore::NextChunk(chunk)) {
    SlowPath slow_path(SlowPath::Patient{});
    if (slow_path.reentrant()) return;
    records_.ForEachIn(chunk, [&](const BlockRecord& record) { more = more && f(record); });
  }
}

// Takes memory of the heap for a block, with room for fences.
void DebugHeap::LayOut(const Request& request, char* base, size_t bytes, BlockRecord* block) {
  const uintptr_t first = reinterpret_cast<uintptr_t>(base) + kFrontBytes;
  const uintptr_t user = AlignUp(first, std::max(PaddingFor(request), size_t{1}));
  block->SetPlace(base, AllocatedSizeFor(bytes), reinterpret_cast<char*>(user));
}

// Writes all of a record but where the block is.
TCMALLOC_ALWAYS_INLINE void DebugHeap::Describe(const Request& request, StackId stack,
                                                BlockRecord* block) {
  block->size = request.size;
  block->set_alignment(request.alignment);
  block->family = request.family;
  block->in_table = false;
  block->paged = false;
  block->unreadable = false;
  block->size_class = 0;
  block->allocated_at = stack;
  block->freed_at = 0;
  block->set_allocating_thread(ThisThread());
  block->set_freeing_thread(0);
}

// Returns the size class of memory that may be used again for blocks of that many bytes; 0 if it
// may not. Samples are chosen by the allocator below, so it must see all blocks where there are
// any.
TCMALLOC_ALWAYS_INLINE uint8_t DebugHeap::SpareClassFor(const Request& request, size_t bytes) {
  const bool suits = IsSmall(bytes) && PaddingFor(request) == 0 && heap.sample_period() == 0;
  return TCMALLOC_LIKELY(suits) ? SizeClassFor(bytes) : 0;
}

// Makes a spare, which is filled, a live block. Its fences fit if its size is the same. Takes no
// lock: whoever looks through all blocks finds that the record has changed.
TCMALLOC_ALWAYS_INLINE void DebugHeap::Reuse(uint32_t place, BlockRecord* spare,
                                             const Request& request, StackId stack) {
  ReleaseStackAt(place, spare->allocated_at);
  ReleaseStackAt(place, spare->freed_at);
  const bool fits = spare->size == request.size;
  spare->version.BeginChange();
  spare->size = request.size;
  spare->set_allocating_thread(ThisThread());
  spare->allocated_at = stack;
  spare->freed_at = 0;
  spare->set_alignment(request.alignment);
  spare->family = request.family;
  if (!fits) WriteSizedFences(*spare);
  if (TCMALLOC_UNLIKELY(request.zeroed)) {
    std::memset(spare->user, 0, request.size);
  } else {
    FillWith<kFreshByte>(spare->user, request.size);
  }
  spare->version.EndChange(BlockState::kLive);
}

// Serves a request of a class from a spare of the thread, without a lock. Finds the stack if it is
// at hand and *stack is 0. Returns null if there is no spare, or no stack, or if the slow path is
// needed.
TCMALLOC_ALWAYS_INLINE void* DebugHeap::TryReuse(const Request& request, uint8_t size_class,
                                                 StackId* stack) {
  BlockRecord* spare = nullptr;
  {
    const BriefPath path;
    if (TCMALLOC_UNLIKELY(!path.entered())) return nullptr;
    const uint32_t place = path.seat_number();
    if (TCMALLOC_UNLIKELY(!IsOwnPlace(place))) return nullptr;
    if (TCMALLOC_UNLIKELY(!queue_.HasOwnSpare(place, size_class))) return nullptr;
    if (*stack == 0) *stack = FindRecentStack(place, request.site);
    if (TCMALLOC_UNLIKELY(*stack == 0)) return nullptr;
    spare = queue_.TakeOwnSpare(place, size_class);
    if (TCMALLOC_LIKELY(IsFilled(*spare))) {
      Reuse(place, spare, request, *stack);
      return spare->user;
    }
  }
  ReportSpare(*spare);
  return nullptr;
}

// Tells about a spare that was written to. Returns if it is as it should be, after all.
void DebugHeap::ReportSpare(const BlockRecord& spare) {
  Fault fault;
  if (!IsFilled(spare, &fault)) Report(&fault, "the free queue");
}

// Finds memory in one entry of the slow path. Not by the fast path: a signal handler that keeps a
// block must not run in the middle of it, and the queue keeps all blocks.
DebugHeap::Placed DebugHeap::PlaceSmall(const Request& request, StackId stack, size_t bytes,
                                        void** user, Fault* fault) {
  SlowPath slow_path;
  if (TCMALLOC_UNLIKELY(slow_path.reentrant())) return Placed::kInEmergency;
  const uint8_t size_class = SpareClassFor(request, bytes);
  const uint32_t place = PlaceOfThread();
  BlockRecord* spare = queue_.TakeSpare(place, size_class);
  if (TCMALLOC_UNLIKELY(spare != nullptr)) {
    if (!IsFilled(*spare, fault)) return Placed::kFaultInQueue;
    Reuse(place, spare, request, stack);
    *user = spare->user;
    return Placed::kInTable;
  }
  return PlaceNew(slow_path, place, request, stack, bytes, size_class, user);
}

// Finds memory that is no spare.
DebugHeap::Placed DebugHeap::PlaceNew(const SlowPath& slow_path, uint32_t place,
                                      const Request& request, StackId stack, size_t bytes,
                                      uint8_t size_class, void** user) {
  auto* base = static_cast<char*>(AllocateSmallWithin(slow_path, bytes));
  if (TCMALLOC_UNLIKELY(base == nullptr)) return Placed::kNowhere;
  BlockRecord* record = TakeRecord(place);
  if (TCMALLOC_UNLIKELY(record == nullptr)) {
    slow_path.FreeBlock(base);
    return Placed::kInEmergency;
  }
  Describe(request, stack, record);
  record->size_class = size_class;
  LayOut(request, base, bytes, record);
  MakeKnown(record);
  *user = Fill(request, /*is_zero=*/false, record);
  return Placed::kInTable;
}

// Returns a record of its own, changing; null if there is no memory for it. Its version goes on, so
// that whoever finds it live finds the new address as well. Called inside the slow path.
TCMALLOC_ALWAYS_INLINE BlockRecord* DebugHeap::TakeRecord(uint32_t place) {
  BlockRecord* record = records_.Take(place, heap.arena());
  if (TCMALLOC_LIKELY(record != nullptr)) record->version.BeginChange();
  return record;
}

// Lets the record of a block be found.
TCMALLOC_ALWAYS_INLINE void DebugHeap::MakeKnown(BlockRecord* record) {
  if (TCMALLOC_LIKELY(HasReadableSeal(record->user) && record_chunks.Hold(record))) return;
  record->in_table = true;
  table_.Insert(record);
}

// Returns a record of its own, changing, for a block whose place is known; null if there is no
// memory for it. Called inside the slow path.
BlockRecord* DebugHeap::Register(uint32_t place, const BlockRecord& block) {
  BlockRecord* record = TakeRecord(place);
  if (TCMALLOC_UNLIKELY(record == nullptr)) return nullptr;
  const BlockVersion version = record->version;
  *record = block;
  record->version = version;
  MakeKnown(record);
  return record;
}

// Finds pages.
DebugHeap::Placed DebugHeap::PlaceLarge(const Request& request, StackId stack, size_t bytes,
                                        void** user) {
  const Options& options = heap.options();
  BlockRecord block = {};
  Describe(request, stack, &block);
  bool is_zero = true;
  if (!options.page_fence ||
      !MapFenced(request.size, request.alignment, options.page_fence_readable, &block)) {
    auto* base = static_cast<char*>(AllocateBelow(bytes, &is_zero));
    if (base == nullptr) return Placed::kNowhere;
    LayOut(request, base, bytes, &block);
  }
  if (block.paged || !heap.emergency().Owns(block.base())) {
    BlockRecord* record = nullptr;
    {
      SlowPath slow_path;
      if (!slow_path.reentrant()) record = Register(PlaceOfThread(), block);
    }
    if (record != nullptr) {
      *user = Fill(request, is_zero, record);
      return Placed::kInTable;
    }
  }
  block.paged ? UnmapFenced(block) : DeallocateUnreported(block.base());
  return Placed::kInEmergency;
}

TCMALLOC_ALWAYS_INLINE size_t DebugHeap::PaddingFor(const Request& request) {
  return request.alignment > kPlainAlignment ? request.alignment : 0;
}

// Returns the bytes that a block takes, with its fences.
TCMALLOC_ALWAYS_INLINE size_t DebugHeap::BytesFor(const Request& request) {
  return kFrontBytes + PaddingFor(request) + request.size + kLeastBackBytes;
}

// Returns true if a block that takes that many bytes, with its fences, has no pages of its own.
TCMALLOC_ALWAYS_INLINE bool DebugHeap::IsSmall(size_t bytes) {
  return bytes <= kMaxSmallSize && !heap.options().page_fence;
}

// Serves what TryReuse did not. `stack` is what that found. Returns null if there is no memory.
void* DebugHeap::AllocateSlow(const Request& request, size_t bytes, uint8_t size_class,
                              StackId stack) {
  if (stack == 0) {
    stack = KeepStack(request.site);
    if (TCMALLOC_LIKELY(size_class != 0 && stack != 0)) {
      if (void* user = TryReuse(request, size_class, &stack)) return user;
    }
  }
  Fault fault;
  void* user = nullptr;
  Placed placed = Placed::kNowhere;
  do {
    placed = IsSmall(bytes) ? PlaceSmall(request, stack, bytes, &user, &fault)
                            : PlaceLarge(request, stack, bytes, &user);
    if (TCMALLOC_LIKELY(placed == Placed::kInTable)) return user;
  } while (placed == Placed::kNowhere && GiveBackWaiting(bytes, &fault));
  ReleaseStack(stack);
  if (fault) Report(&fault, "the free queue");
  return placed == Placed::kInEmergency ? AllocateInEmergency(request) : nullptr;
}

// Gives the memory of blocks that wait back, where there is no other for `bytes`: those of the
// thread, and only if there are none those of threads that have ended or share their parts. Returns
// true if there were any; stops at a fault and tells about it. A request for more than all that is
// there has needs other memory.
bool DebugHeap::GiveBackWaiting(size_t bytes, Fault* fault) {
  if (bytes > heap.page_heap().total().bytes() + queue_.bytes()) return false;
  const SlowPath slow_path;
  if (slow_path.reentrant()) return false;
  bool gave_some = false;
  const auto empty = [&](uint32_t place) {
    while (BlockRecord* waiting = queue_.TakeAny(queue_storage, place)) {
      if (!Evict(slow_path, PlaceOfThread(), waiting, fault)) return false;
      gave_some = true;
    }
    return true;
  };
  const bool whole = empty(PlaceOfThread()) && (gave_some || EmptyOthers(empty));
  return whole && gave_some;
}

// Calls empty(place) for the places that threads share and for those of ended threads, until it
// returns false. Returns false then. No thread that starts gets such a place meanwhile.
template <typename F>
bool DebugHeap::EmptyOthers(F empty) {
  bool whole = true;
  for (uint32_t place = kOwnPlaces; whole && place < kPlaces; ++place) whole = empty(place);
  ForkGate& gate = heap.threads().gate();
  GateSeat* seats = nullptr;
  while (GateSeat* seat = whole ? gate.TakeFreeSeat() : nullptr) {
    seat->next_free = seats;
    seats = seat;
    if (IsOwnPlace(seat->number)) whole = empty(seat->number);
  }
  while (seats != nullptr) gate.ReturnSeat(std::exchange(seats, seats->next_free));
  return whole;
}

size_t DebugHeap::SizeFor(size_t size, size_t alignment) {
  return std::max(size, alignment) <= kLargestRequest ? size : 0;
}

// Does what is due after an allocation.
TCMALLOC_ALWAYS_INLINE void DebugHeap::FinishAllocation(const char* call, size_t size, void* user) {
  if (TCMALLOC_UNLIKELY(BriefPath::NeedsSlowPath())) const SlowPath slow_path;
  if (TCMALLOC_UNLIKELY(put_off_count_.load(std::memory_order_relaxed) != 0)) FreePutOff();
  const Options& options = heap.options();
  if (TCMALLOC_UNLIKELY(options.check_interval != 0)) CheckAtIntervals();
  if (TCMALLOC_UNLIKELY(options.trace)) WriteTraceLine(options, call, size, user);
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) ReportNew(user, size);
}

void* DebugHeap::Allocate(const Request& request) {
  if (TCMALLOC_UNLIKELY(std::max(request.size, request.alignment) > kLargestRequest)) {
    return nullptr;
  }
  const size_t bytes = BytesFor(request);
  const uint8_t size_class = SpareClassFor(request, bytes);
  StackId stack = 0;
  void* user = TCMALLOC_LIKELY(size_class != 0) ? TryReuse(request, size_class, &stack) : nullptr;
  if (TCMALLOC_UNLIKELY(user == nullptr)) {
    user = AllocateSlow(request, bytes, size_class, stack);
    if (user == nullptr) return nullptr;
  }
  FinishAllocation(request.call, request.size, user);
  return user;
}

// The request stays in registers, because no call gets it.
void* DebugHeap::AllocatePlain(size_t size, BlockFamily family, const CallSite& site) {
  if (TCMALLOC_UNLIKELY(size > kMaxSmallSize)) return AllocatePlainSlow(size, family, site, 0);
  const Request request = {.size = size, .family = family, .site = site};
  const uint8_t size_class = SpareClassFor(request, BytesFor(request));
  StackId stack = 0;
  void* user = TCMALLOC_LIKELY(size_class != 0) ? TryReuse(request, size_class, &stack) : nullptr;
  if (TCMALLOC_UNLIKELY(user == nullptr)) return AllocatePlainSlow(size, family, site, stack);
  FinishAllocation("malloc", size, user);
  return user;
}

// Does what AllocatePlain did not. `stack` is what that found.
void* DebugHeap::AllocatePlainSlow(size_t size, BlockFamily family, const CallSite& site,
                                   StackId stack) {
  if (TCMALLOC_UNLIKELY(size > kLargestRequest)) return nullptr;
  const Request request = {.size = size, .family = family, .site = site};
  const size_t bytes = BytesFor(request);
  void* user = AllocateSlow(request, bytes, SpareClassFor(request, bytes), stack);
  if (user != nullptr) FinishAllocation(request.call, size, user);
  return user;
}

// Does what is due after a free.
TCMALLOC_ALWAYS_INLINE void DebugHeap::FinishFree() {
  if (TCMALLOC_UNLIKELY(BriefPath::NeedsSlowPath())) const SlowPath slow_path;
  if (TCMALLOC_UNLIKELY(put_off_count_.load(std::memory_order_relaxed) != 0)) FreePutOff();
}

void DebugHeap::Free(void* block, const ReleaseClaim& claim) {
  if (block == nullptr) return;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  BlockRecord* record = FindBySeal(block);
  StackId stack = 0;
  if (TCMALLOC_UNLIKELY(!TryFree(block, record, claim, &stack))) {
    FreeSlow(block, record, claim, stack);
  }
  FinishFree();
}

// The claim stays in registers, because no call gets it.
void DebugHeap::FreePlain(void* block, const CallSite& site) {
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  BlockRecord* record = FindBySeal(block);
  StackId stack = 0;
  if (TCMALLOC_UNLIKELY(!TryFree(block, record, {.site = site}, &stack))) {
    FreePlainSlow(block, record, site, stack);
  }
  FinishFree();
}

// Does what FreePlain did not. `stack` is what that found.
void DebugHeap::FreePlainSlow(void* block, BlockRecord* record, const CallSite& site,
                              StackId stack) {
  FreeSlow(block, record, {.site = site}, stack);
}

// Frees a block without a lock, if all is as it should be and the queue has room for it. Finds the
// stack if it is at hand and *stack is 0. Otherwise returns false, with nothing else done. `record`
// is what FindBySeal returned.
TCMALLOC_ALWAYS_INLINE bool DebugHeap::TryFree(void* block, BlockRecord* record,
                                               const ReleaseClaim& claim, StackId* stack) {
  const BriefPath path;
  if (TCMALLOC_UNLIKELY(!path.entered())) return false;
  const uint32_t place = path.seat_number();
  if (TCMALLOC_UNLIKELY(!IsOwnPlace(place))) return false;
  if (*stack == 0) *stack = FindRecentStack(place, claim.site);
  if (TCMALLOC_UNLIKELY(*stack == 0 || record == nullptr)) return false;
  const uint32_t seen = record->version.Current();
  // The record is that of the block as long as it is live.
  if (TCMALLOC_UNLIKELY(BlockVersion::StateOf(seen) != BlockState::kLive || record->user != block ||
                        record->paged)) {
    return false;
  }
  const Options& options = heap.options();
  if (TCMALLOC_UNLIKELY(!IsClaimPlainlyRight(*record, claim) || !AreFencesWhole(*record) ||
                        options.trace || !options.reclaim_memory)) {
    return false;
  }
  return queue_.PushOwn(queue_storage, place, record, options.max_free_queue_size, [&] {
    if (TCMALLOC_UNLIKELY(!record->version.TryBeginChange(seen))) return false;
    record->freed_at = *stack;
    record->set_freeing_thread(ThisThread());
    FillWith<kFreedByte>(record->user, record->size);
    record->version.EndChange(BlockState::kQueued);
    return true;
  });
}

// Does what TryFree did not. `stack` is what that found.
void DebugHeap::FreeSlow(void* block, BlockRecord* record, const ReleaseClaim& claim,
                         StackId stack) {
  if (TCMALLOC_UNLIKELY(record == nullptr) && heap.emergency().Owns(block)) {
    ReleaseStack(stack);
    return heap.emergency().Free(block);
  }
  if (stack == 0) {
    stack = KeepStack(claim.site);
    if (TCMALLOC_LIKELY(stack != 0) && TryFree(block, record, claim, &stack)) return;
  }
  FreeWithLock(block, claim, stack);
}

// Does what takes locks, and tells about faults. Its own function, because a walk of the stack
// should not find the memory of a fault on it.
void DebugHeap::FreeWithLock(void* block, const ReleaseClaim& claim, StackId stack) {
  Fault fault;
  const Freed freed = FreeInSlowPath(block, claim, stack, &fault);
  if (TCMALLOC_UNLIKELY(freed == Freed::kNotNow)) {
    ReleaseStack(stack);
    return PutOff(block);
  }
  if (TCMALLOC_UNLIKELY(freed == Freed::kFault)) {
    if (fault.kind == FaultKind::kUnknown) fault = FaultOfUnknown(block);
    Report(&fault, claim.call);
  }
  if (TCMALLOC_UNLIKELY(freed == Freed::kFaultInQueue)) Report(&fault, "the free queue");
}

// Checks a block and takes it from the program. Returns its record, or null and tells about a
// fault. Where another thread frees the same block meanwhile, its pages stay readable.
BlockRecord* DebugHeap::BeginFree(void* block, const ReleaseClaim& claim, StackId stack,
                                  Fault* fault) {
  BlockRecord* record = Find(block);
  if (TCMALLOC_UNLIKELY(record == nullptr)) {
    fault->kind = FaultKind::kUnknown;
    return nullptr;
  }
  uint32_t seen = 0;
  do {
    SpinLockHolder holder(records_.LockOf(record));
    seen = record->version.Current();
    const BlockRecord* known = record->user == block ? record : nullptr;
    if (TCMALLOC_UNLIKELY(!IsGood(known, claim, fault))) return nullptr;
  } while (!record->version.TryBeginChange(seen));
  record->freed_at = stack;
  record->set_freeing_thread(ThisThread());
  return record;
}

// Does all of it in one entry of the slow path. Faults are told after it, because a report may
// allocate.
DebugHeap::Freed DebugHeap::FreeInSlowPath(void* block, const ReleaseClaim& claim, StackId stack,
                                           Fault* fault) {
  SlowPath slow_path;
  if (TCMALLOC_UNLIKELY(slow_path.reentrant())) return Freed::kNotNow;
  // Its own from now on: others read the record at most.
  BlockRecord* freed = BeginFree(block, claim, stack, fault);
  if (TCMALLOC_UNLIKELY(freed == nullptr)) return Freed::kFault;
  const Options& options = heap.options();
  if (TCMALLOC_UNLIKELY(options.trace)) WriteTraceLine(options, "free", freed->size, block);
  FillFreed(freed);
  const bool kept = freed->paged ? options.page_fence_never_reclaim : !options.reclaim_memory;
  if (TCMALLOC_UNLIKELY(kept)) return Freed::kDone;
  const size_t limit = options.max_free_queue_size;
  const uint32_t place = PlaceOfThread();
  MetadataArena& arena = heap.arena();
  BlockRecord* victim = queue_.Push(queue_storage, place, freed, limit, arena);
  // Some more than must go, so that the next calls find room.
  for (int left = kEvictedAtOnce; TCMALLOC_UNLIKELY(victim != nullptr); --left) {
    if (!Evict(slow_path, place, victim, fault)) return Freed::kFaultInQueue;
    victim = left > 0 ? queue_.PopFirst(queue_storage, place, limit, arena)
                      : queue_.PopExcess(queue_storage, place, limit, arena);
  }
  return Freed::kDone;
}

// Fills a freed block, or forbids it.
void DebugHeap::FillFreed(BlockRecord* freed) {
  FillBlock<kFreedByte>(*freed);
  if (TCMALLOC_UNLIKELY(freed->paged)) {
    SpinLockHolder holder(records_.LockOf(freed));
    freed->unreadable = ForbidFenced(*freed, heap.options().page_fence_readable);
  }
  freed->version.EndChange(BlockState::kQueued);
}

// Checks a block that left the queue, and gives its memory back. Returns false and tells about a
// fault.
bool DebugHeap::Evict(const SlowPath& slow_path, uint32_t place, BlockRecord* victim,
                      Fault* fault) {
  if (TCMALLOC_UNLIKELY(!IsFilled(*victim, fault))) return false;
  ReleaseStackAt(place, victim->allocated_at);
  ReleaseStackAt(place, victim->freed_at);
  if (TCMALLOC_UNLIKELY(victim->in_table)) table_.Remove(victim);
  const BlockRecord block = *victim;
  records_.Give(place, victim);
  if (TCMALLOC_UNLIKELY(block.paged)) {
    UnmapFenced(block);
  } else {
    slow_path.FreeBlock(block.base());
  }
  return true;
}

// Names the block before, if its end was written to as well: whoever writes far beyond a block
// damages the beginning of the next one.
void DebugHeap::BlameBlockBefore(Fault* fault) {
  const BlockRecord next = fault->block;
  ForEachBlock([&](const BlockRecord& record) {
    if (!record.Surrounds(next.base() - 1)) return true;
    const uint32_t seen = record.version.Current();
    Fault overflow;
    if (FindOverflow(record, &overflow) && !record.version.HasChangedSince(seen)) {
      *fault = overflow;
      fault->next = next.user;
    }
    return false;
  });
}

// Tells about a fault, and ends the process.
void DebugHeap::Report(Fault* fault, const char* call) {
  if (IsDamagedBefore(*fault)) BlameBlockBefore(fault);
  ReportFault(*fault, call);
}

// Finds out what an address is at which no block begins.
Fault DebugHeap::FaultOfUnknown(const void* address) {
  Fault fault = {};
  fault.kind = FaultKind::kUnknown;
  fault.address = address;
  fault.in_heap = heap.page_map().Get(PageId::Containing(address)) != nullptr;
  ForEachBlock([&](const BlockRecord& record) {
    if (!record.Surrounds(address)) return true;
    fault.kind = FaultKind::kInterior;
    fault.block = record;
    return false;
  });
  return fault;
}

// Returns the size of a live block of malloc that is as it should be, if a look without a lock
// tells; kUnknown otherwise.
size_t DebugHeap::TrySizeOf(const void* block) {
  const BriefPath path;
  if (TCMALLOC_UNLIKELY(!path.entered())) return ReleaseClaim::kUnknown;
  const BlockRecord* record = FindBySeal(block);
  if (TCMALLOC_UNLIKELY(record == nullptr || record->user != block || !record->is_live() ||
                        record->family != BlockFamily::kMalloc || !AreFencesWhole(*record))) {
    return ReleaseClaim::kUnknown;
  }
  return record->size;
}

// Makes a live block smaller that cannot move, because no block fails to shrink. It has no
// alignment then, as one that moved. It stays as it is where no lock may be taken.
void DebugHeap::ShrinkInPlace(void* block, size_t size) {
  const SlowPath slow_path;
  BlockRecord* record = slow_path.reentrant() ? nullptr : Find(block);
  if (record == nullptr) return;
  SpinLockHolder holder(records_.LockOf(record));
  const uint32_t seen = record->version.Current();
  if (record->user != block || BlockVersion::StateOf(seen) != BlockState::kLive ||
      !record->version.TryBeginChange(seen)) {
    return;
  }
  record->size = size;
  record->set_alignment(0);
  WriteSizedFences(*record);
  record->version.EndChange(BlockState::kLive);
}

void* DebugHeap::Reallocate(void* block, size_t size, const CallSite& site) {
  size_t old_size = TrySizeOf(block);
  if (TCMALLOC_UNLIKELY(old_size == ReleaseClaim::kUnknown)) {
    old_size = SizeOf(block, "realloc");
    Verify(block, BlockFamily::kMalloc, "realloc");
  }
  void* moved = Allocate({.size = size, .call = "realloc", .site = site});
  if (TCMALLOC_UNLIKELY(moved == nullptr)) {
    if (size > old_size) return nullptr;
    ShrinkInPlace(block, size);
    return block;
  }
  std::memcpy(moved, block, std::min(size, old_size));
  Free(block, {.call = "realloc", .site = site});
  return moved;
}

// Where no lock may be taken, the seal of the block leads to its record: the block is new.
void DebugHeap::SetFamily(void* block, BlockFamily family) {
  if (heap.emergency().Owns(block)) return;
  const SlowPath slow_path;
  BlockRecord* record =
      slow_path.reentrant() ? Seal::Read(block).ClaimedRecord(block) : Find(block);
  if (record != nullptr) record->family = family;
}

size_t DebugHeap::SizeOf(const void* block, const char* call) {
  if (block == nullptr) return 0;
  if (heap.emergency().Owns(block)) return EmergencyArena::SizeOf(block);
  Fault fault;
  size_t size = 0;
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) return FindSizeBySeal(block, &size) ? size : 0;
    if (const BlockRecord* record = Find(block)) {
      size = record->size;
      if (!record->is_live()) fault = FaultOf(FaultKind::kFreed, *record);
    } else {
      fault.kind = FaultKind::kUnknown;
    }
  }
  if (fault.kind == FaultKind::kUnknown) fault = FaultOfUnknown(block);
  if (fault) Report(&fault, call);
  return size;
}

bool DebugHeap::Owns(const void* block) {
  if (heap.emergency().Owns(block)) return true;
  SlowPath slow_path(SlowPath::Patient{});
  size_t size = 0;
  if (slow_path.reentrant()) return FindSizeBySeal(block, &size);
  const BlockRecord* record = Find(block);
  return record != nullptr && record->is_live();
}

void DebugHeap::Verify(const void* block, BlockFamily family, const char* call) {
  if (block == nullptr || heap.emergency().Owns(block)) return;
  Fault fault;
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) return;
    IsGood(Find(block), {.family = family}, &fault);
  }
  if (fault.kind == FaultKind::kUnknown) fault = FaultOfUnknown(block);
  if (fault) Report(&fault, call);
}

void DebugHeap::VerifyAll(const char* call) {
  Fault fault;
  ForEachBlock([&](const BlockRecord& record) {
    const uint32_t seen = record.version.Current();
    const BlockState state = BlockVersion::StateOf(seen);
    if (state == BlockState::kLive) AreFencesGood(record, &fault);
    if (state == BlockState::kQueued) IsFilled(record, &fault);
    if (TCMALLOC_UNLIKELY(fault && record.version.HasChangedSince(seen))) {
      fault.kind = FaultKind::kNone;
    }
    return !fault;
  });
  if (fault) Report(&fault, call);
}

BlockTotals DebugHeap::Count() {
  BlockTotals totals;
  ForEachBlock([&](const BlockRecord& record) {
    if (!record.is_live()) return true;
    ++totals.blocks;
    totals.bytes += record.size;
    ++totals.histogram[std::min<size_t>(std::bit_width(record.size), BlockTotals::kBuckets - 1)];
    return true;
  });
  return totals;
}

// Keeps a block that was freed where no lock may be taken. Where there are too many of them, the
// block stays allocated.
void DebugHeap::PutOff(void* block) {
  for (Deferred& place : put_off_) {
    void* none = nullptr;
    // Release pairs with the acquire in FreePutOff: what was done with the block comes before.
    if (place.block.compare_exchange_strong(none, block, std::memory_order_release,
                                            std::memory_order_relaxed)) {
      put_off_count_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
  }
}

// Frees what signal handlers freed. Their calls are not known any more; families and alignments are
// taken as right.
void DebugHeap::FreePutOff() {
  for (Deferred& place : put_off_) {
    // Acquire pairs with the release in PutOff.
    void* block = place.block.exchange(nullptr, std::memory_order_acquire);
    if (block == nullptr) continue;
    put_off_count_.fetch_sub(1, std::memory_order_relaxed);
    ReleaseClaim claim = {.call = "free in a signal handler", .site = CallSite::OfThisFunction()};
    {
      SlowPath slow_path;
      if (slow_path.reentrant()) return PutOff(block);
      if (const BlockRecord* record = Find(block)) {
        claim.family = record->family;
        claim.alignment = record->alignment();
      }
    }
    Free(block, claim);
  }
}

void DebugHeap::CheckAtIntervals() {
  const uint64_t count = allocations_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count % heap.options().check_interval == 0) VerifyAll("a check of all blocks");
}

}  // namespace tcmalloc
