// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/debug_heap.h"

#include <pthread.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "allocator/allocate.h"
#include "allocator/allocated_size.h"
#include "allocator/deallocate.h"
#include "base/bits.h"
#include "debug/fences.h"
#include "debug/page_fence.h"
#include "debug/trace.h"
#include "heap/mode.h"
#include "hook/hooks.h"
#include "pages/page_types.h"
#include "system/auxv.h"

namespace tcmalloc {
namespace {

// The alignment of every block whose program asks for none.
constexpr size_t kPlainAlignment = 16;

uintptr_t ThisThread() { return static_cast<uintptr_t>(pthread_self()); }

// Options are read when the heap is made, which a thread does on its first way into the slow path.
const Options& LoadedOptions() {
  if (TCMALLOC_UNLIKELY(!heap.initialized())) LeaveSlowPath(EnterSlowPath());
  return heap.options();
}

Fault FaultOf(FaultKind kind, const BlockRecord& block) {
  Fault fault;
  fault.kind = kind;
  fault.address = block.user;
  fault.block = block;
  return fault;
}

Fault DamageFault(FaultKind kind, const BlockRecord& block, const char* damage,
                  unsigned char wanted) {
  Fault fault = FaultOf(kind, block);
  fault.damage = damage;
  fault.found = static_cast<unsigned char>(*damage);
  fault.wanted = wanted;
  return fault;
}

// Looks at the bytes around a block.
Fault CheckFences(const BlockRecord& block) {
  if (const char* damage = FindDamageBefore(block)) {
    return DamageFault(FaultKind::kBefore, block, damage, FenceByte(damage));
  }
  if (const char* damage = FindDamageAfter(block)) {
    return DamageFault(FaultKind::kAfter, block, damage, FenceByte(damage));
  }
  return {};
}

// Looks at a block that was freed and filled.
Fault CheckFilled(const BlockRecord& block) {
  if (block.unreadable) return {};
  if (const char* damage = FindOverwritten(block.user, block.end())) {
    return DamageFault(FaultKind::kWrittenFree, block, damage, kFreedByte);
  }
  return CheckFences(block);
}

// pvalloc rounds up what the program asks for.
bool IsSizeOf(const BlockRecord& block, size_t size) {
  if (size == block.size) return true;
  return block.family == Family::kMalloc && block.alignment == KernelPageSize() &&
         size < block.size && AlignUp(std::max<size_t>(size, 1), block.alignment) == block.size;
}

// Compares a live block with what a release says of it.
Fault CheckClaim(const BlockRecord& block, const ReleaseClaim& claim) {
  FaultKind kind = FaultKind::kNone;
  size_t given = 0;
  if (block.family != claim.family) {
    kind = FaultKind::kMismatch;
  } else if (claim.size != ReleaseClaim::kUnknown && !IsSizeOf(block, claim.size)) {
    kind = FaultKind::kWrongSize;
    given = claim.size;
  } else if (claim.alignment != ReleaseClaim::kUnknown && claim.alignment != block.alignment) {
    kind = FaultKind::kWrongAlignment;
    given = claim.alignment;
  }
  if (kind == FaultKind::kNone) return {};
  Fault fault = FaultOf(kind, block);
  fault.family = claim.family;
  fault.given = given;
  return fault;
}

// Looks at a block that should be live.
Fault CheckLive(const BlockRecord& block, const ReleaseClaim& claim) {
  if (!block.is_live()) return FaultOf(FaultKind::kFreed, block);
  const Fault fault = CheckClaim(block, claim);
  return fault ? fault : CheckFences(block);
}

void* AllocateInEmergency(const Request& request) {
  void* block = heap.emergency().Allocate(std::max<size_t>(request.size, 1),
                                          std::max(request.alignment, kPlainAlignment));
  if (block != nullptr && request.zeroed) std::memset(block, 0, request.size);
  return block;
}

void Fill(const Request& request, const BlockRecord& block) {
  WriteFences(block);
  if (!request.zeroed) {
    std::memset(block.user, kFreshByte, block.size);
  } else if (!block.paged) {
    std::memset(block.user, 0, block.size);
  }
}

}  // namespace

constinit DebugHeap debug_heap;

void StartDebugMode() {}

// Finds memory for a block: in pages of its own, or with room for fences in the heap.
bool DebugHeap::Place(const Request& request, BlockRecord* block) {
  const Options& options = LoadedOptions();
  if (request.size > kLargestRequest || request.alignment > kLargestRequest) return false;
  if (TCMALLOC_UNLIKELY(options.page_fence) &&
      MapFenced(request.size, request.alignment, options.page_fence_readable, block)) {
    return true;
  }
  const size_t padding = request.alignment > kPlainAlignment ? request.alignment : 0;
  const size_t bytes = kFrontBytes + padding + request.size + kLeastBackBytes;
  // Not by the fast path: a signal handler that keeps a block must not run in the middle of it, and
  // the queue keeps all blocks.
  block->base = static_cast<char*>(AllocateUnreported(bytes));
  if (block->base == nullptr) return false;
  block->total = AllocatedSizeFor(bytes);
  const uintptr_t first = reinterpret_cast<uintptr_t>(block->base) + kFrontBytes;
  block->user = reinterpret_cast<char*>(AlignUp(first, std::max<size_t>(padding, 1)));
  return true;
}

// Gives memory back that the table does not know, or not any more.
void DebugHeap::Discard(const BlockRecord& block) {
  block.paged ? UnmapFenced(block) : DeallocateUnreported(block.base);
}

size_t DebugHeap::SizeFor(size_t size, size_t alignment) {
  return std::max(size, alignment) <= kLargestRequest ? size : 0;
}

bool DebugHeap::Register(const BlockRecord& block) {
  SlowPath slow_path;
  return !slow_path.reentrant() && table_.Insert(block);
}

void* DebugHeap::Allocate(const Request& request) {
  BlockRecord block;
  if (!Place(request, &block)) return nullptr;
  block.size = request.size;
  block.alignment = request.alignment;
  block.family = request.family;
  void* user = block.user;
  if (!block.paged && heap.emergency().Owns(block.base)) {
    Discard(block);
    user = AllocateInEmergency(request);
  } else {
    block.allocating_thread = ThisThread();
    block.allocated_at = CaptureCaller();
    Fill(request, block);
    if (TCMALLOC_UNLIKELY(!Register(block))) {
      ReleaseStack(block.allocated_at);
      Discard(block);
      user = AllocateInEmergency(request);
    }
  }
  if (TCMALLOC_UNLIKELY(put_off_count_.load(std::memory_order_relaxed) != 0)) FreePutOff();
  const Options& options = heap.options();
  if (TCMALLOC_UNLIKELY(options.check_interval != 0)) CheckAtIntervals();
  if (TCMALLOC_UNLIKELY(options.trace)) WriteTraceLine(options, request.call, request.size, user);
  if (TCMALLOC_UNLIKELY(!hooks.new_block.empty())) ReportNew(user, request.size);
  return user;
}

// Checks a block and takes it from the program. Returns a fault, or copies the record.
Fault DebugHeap::BeginFree(void* block, const ReleaseClaim& claim, StackId stack,
                           BlockRecord* freed) {
  return table_.With(block, [&](BlockRecord* record) -> Fault {
    if (record == nullptr) {
      Fault fault;
      fault.kind = FaultKind::kUnknown;
      return fault;
    }
    if (const Fault fault = CheckLive(*record, claim)) return fault;
    record->state = BlockState::kFreeing;
    record->freed_at = stack;
    record->freeing_thread = ThisThread();
    *freed = *record;
    return {};
  });
}

void DebugHeap::Free(void* block, const ReleaseClaim& claim) {
  if (block == nullptr) return;
  if (TCMALLOC_UNLIKELY(!hooks.delete_block.empty())) ReportDelete(block);
  if (TCMALLOC_UNLIKELY(heap.emergency().Owns(block))) return heap.emergency().Free(block);
  const StackId stack = CaptureCaller();
  BlockRecord freed;
  Fault fault;
  bool reentrant = false;
  {
    SlowPath slow_path;
    reentrant = slow_path.reentrant();
    if (!reentrant) fault = BeginFree(block, claim, stack, &freed);
  }
  if (TCMALLOC_UNLIKELY(reentrant)) {
    ReleaseStack(stack);
    return PutOff(block);
  }
  if (TCMALLOC_UNLIKELY(fault.kind == FaultKind::kUnknown)) fault = FaultOfUnknown(block);
  if (TCMALLOC_UNLIKELY(static_cast<bool>(fault))) ReportFault(fault, claim.call);
  const Options& options = heap.options();
  if (TCMALLOC_UNLIKELY(options.trace)) WriteTraceLine(options, "free", freed.size, block);
  FinishFree(freed);
  if (TCMALLOC_UNLIKELY(put_off_count_.load(std::memory_order_relaxed) != 0)) FreePutOff();
}

// Fills a freed block, or forbids it, and puts it into the queue.
void DebugHeap::FinishFree(const BlockRecord& freed) {
  const Options& options = heap.options();
  std::memset(freed.user, kFreedByte, freed.size);
  const bool unreadable = freed.paged && ForbidFenced(freed, options.page_fence_readable);
  const bool kept = freed.paged ? options.page_fence_never_reclaim : !options.reclaim_memory;
  void* victim = nullptr;
  {
    SlowPath slow_path;
    if (TCMALLOC_UNLIKELY(slow_path.reentrant())) return;
    table_.With(freed.user, [&](BlockRecord* record) {
      record->state = BlockState::kQueued;
      record->unreadable = unreadable;
    });
    if (kept) return;
    victim = queue_.Push(freed.user, freed.total);
  }
  EvictExcess(victim);
}

// Removes `first`, unless it is null, and then what the queue holds too much.
void DebugHeap::EvictExcess(void* first) {
  for (void* victim = first;; victim = nullptr) {
    if (victim == nullptr) {
      SlowPath slow_path;
      if (slow_path.reentrant()) return;
      victim = queue_.PopExcess(heap.options().max_free_queue_size);
    }
    if (victim == nullptr) return;
    Evict(victim);
  }
}

// Checks a block that left the queue, and gives its memory back.
void DebugHeap::Evict(void* user) {
  BlockRecord block;
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) return;
    table_.With(user, [&](BlockRecord* record) {
      record->state = BlockState::kLeaving;
      block = *record;
    });
  }
  if (const Fault fault = CheckFilled(block)) ReportFault(fault, "the free queue");
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) return;
    table_.Remove(user);
  }
  ReleaseStack(block.allocated_at);
  ReleaseStack(block.freed_at);
  Discard(block);
}

// Finds out what an address is at which no block begins.
Fault DebugHeap::FaultOfUnknown(const void* address) {
  Fault fault;
  fault.kind = FaultKind::kUnknown;
  fault.address = address;
  fault.in_heap = heap.page_map().Get(PageId::Containing(address)) != nullptr;
  for (size_t i = 0; i < CheckedBlockTable::kShards; ++i) {
    SlowPath slow_path;
    if (slow_path.reentrant()) break;
    table_.ForEachIn(i, [&](const BlockRecord& record) {
      if (!record.Surrounds(address)) return;
      fault.kind = FaultKind::kInterior;
      fault.block = record;
    });
  }
  return fault;
}

void* DebugHeap::Reallocate(void* block, size_t size) {
  const bool in_emergency = heap.emergency().Owns(block);
  const size_t old_size = SizeOf(block, "realloc");
  if (!in_emergency) Verify(block, Family::kMalloc, "realloc");
  void* moved = Allocate({.size = size, .call = "realloc"});
  if (moved == nullptr) return nullptr;
  std::memcpy(moved, block, std::min(size, old_size));
  Free(block, {.call = "realloc"});
  return moved;
}

void DebugHeap::SetFamily(void* block, Family family) {
  SlowPath slow_path;
  if (slow_path.reentrant()) return;
  table_.With(block, [=](BlockRecord* record) {
    if (record != nullptr) record->family = family;
  });
}

size_t DebugHeap::SizeOf(const void* block, const char* call) {
  if (block == nullptr) return 0;
  if (heap.emergency().Owns(block)) return EmergencyArena::SizeOf(block);
  Fault fault;
  size_t size = 0;
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) {
      const auto* user = static_cast<const char*>(block);
      if (heap.page_map().FindInUse(block) == nullptr) return 0;
      const Seal seal = Seal::Read(user);
      return seal.Fits(user) ? seal.size : 0;
    }
    fault = table_.With(block, [&](const BlockRecord* record) -> Fault {
      if (record == nullptr) {
        Fault unknown;
        unknown.kind = FaultKind::kUnknown;
        return unknown;
      }
      size = record->size;
      return record->is_live() ? Fault{} : FaultOf(FaultKind::kFreed, *record);
    });
  }
  if (fault.kind == FaultKind::kUnknown) fault = FaultOfUnknown(block);
  if (fault) ReportFault(fault, call);
  return size;
}

bool DebugHeap::Owns(const void* block) {
  if (heap.emergency().Owns(block)) return true;
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return heap.page_map().FindInUse(block) != nullptr;
  return table_.With(
      block, [](const BlockRecord* record) { return record != nullptr && record->is_live(); });
}

void DebugHeap::Verify(const void* block, Family family, const char* call) {
  if (block == nullptr || heap.emergency().Owns(block)) return;
  Fault fault;
  {
    SlowPath slow_path;
    if (slow_path.reentrant()) return;
    fault = table_.With(block, [&](const BlockRecord* record) -> Fault {
      if (record != nullptr) return CheckLive(*record, {.family = family});
      Fault unknown;
      unknown.kind = FaultKind::kUnknown;
      return unknown;
    });
  }
  if (fault.kind == FaultKind::kUnknown) fault = FaultOfUnknown(block);
  if (fault) ReportFault(fault, call);
}

void DebugHeap::VerifyAll(const char* call) {
  Fault fault;
  for (size_t i = 0; i < CheckedBlockTable::kShards && !fault; ++i) {
    SlowPath slow_path(SlowPath::Patient{});
    if (slow_path.reentrant()) return;
    table_.ForEachIn(i, [&](const BlockRecord& record) {
      if (fault) return;
      if (record.is_live()) fault = CheckFences(record);
      if (record.state == BlockState::kQueued) fault = CheckFilled(record);
    });
  }
  if (fault) ReportFault(fault, call);
}

BlockTotals DebugHeap::Count() {
  BlockTotals totals;
  for (size_t i = 0; i < CheckedBlockTable::kShards; ++i) {
    SlowPath slow_path(SlowPath::Patient{});
    if (slow_path.reentrant()) break;
    table_.ForEachIn(i, [&](const BlockRecord& record) {
      if (!record.is_live()) return;
      ++totals.blocks;
      totals.bytes += record.size;
      ++totals.histogram[std::min<size_t>(std::bit_width(record.size), BlockTotals::kBuckets - 1)];
    });
  }
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

// Frees what signal handlers freed. Their calls are not known any more; families are taken as
// right.
void DebugHeap::FreePutOff() {
  for (Deferred& place : put_off_) {
    // Acquire pairs with the release in PutOff.
    void* block = place.block.exchange(nullptr, std::memory_order_acquire);
    if (block == nullptr) continue;
    put_off_count_.fetch_sub(1, std::memory_order_relaxed);
    Family family = Family::kMalloc;
    {
      SlowPath slow_path;
      if (slow_path.reentrant()) return PutOff(block);
      table_.With(block, [&](const BlockRecord* record) {
        if (record != nullptr) family = record->family;
      });
    }
    Free(block, {.family = family, .call = "free in a signal handler"});
  }
}

void DebugHeap::CheckAtIntervals() {
  const uint64_t count = allocations_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (count % heap.options().check_interval == 0) VerifyAll("a check of all blocks");
}

}  // namespace tcmalloc
