// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks whose every use is checked. They come from the allocator below, with fences around them.
// docs/subsystems/debug-allocator.md describes the whole.

#ifndef TCMALLOC_DEBUG_DEBUG_HEAP_H_
#define TCMALLOC_DEBUG_DEBUG_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/slow_path.h"
#include "debug/checked_block_table.h"
#include "debug/faults.h"
#include "debug/free_queue.h"
#include "debug/record_store.h"
#include "debug/release_claim.h"
#include "heap/heap.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A request for a block.
struct Request {
  size_t size = 0;
  size_t alignment = 0;  // a power of two, or 0 if none is asked for
  BlockFamily family = BlockFamily::kMalloc;
  bool zeroed = false;
  const char* call = "malloc";  // for the trace, in gperftools' words
  CallSite site = {};           // where this library asks for it
};

struct BlockTotals {
  size_t blocks = 0;
  size_t bytes = 0;
  static constexpr size_t kBuckets = 64;
  uint32_t histogram[kBuckets] = {};  // by the number of bits of the size
};

// Thread safe. Never waits for a lock in a signal handler that interrupted the allocator, nor while
// another thread forks: blocks then come from the emergency arena, without fences, and frees are
// put off.
class DebugHeap {
 public:
  constexpr DebugHeap() = default;
  DebugHeap(const DebugHeap&) = delete;
  DebugHeap& operator=(const DebugHeap&) = delete;

  // Returns null if there is no memory.
  void* Allocate(const Request& request);
  void Free(void* block, const ReleaseClaim& claim);
  // Allocate and Free for a request of malloc's or new's kind, and for a claim that says nothing.
  // `block` is not null.
  void* AllocatePlain(size_t size, BlockFamily family, const CallSite& site);
  void FreePlain(void* block, const CallSite& site);
  // Moves the contents to a new block, always. Returns null if there is no memory for it; then
  // `block` stays.
  void* Reallocate(void* block, size_t size, const CallSite& site);
  // Makes a live block belong to another family.
  void SetFamily(void* block, BlockFamily family);

  // Returns the usable bytes of a block for such a request: just that; 0 if no block is so large.
  static size_t SizeFor(size_t size, size_t alignment = 1);
  // Returns the bytes that the program asked for; 0 for null.
  size_t SizeOf(const void* block, const char* call);
  // Returns true if a live block begins there.
  bool Owns(const void* block);

  // Check a live block of a family, and all blocks. A fault ends the process.
  void Verify(const void* block, BlockFamily family, const char* call);
  void VerifyAll(const char* call);

  BlockTotals Count();
  size_t queued_bytes() const { return queue_.bytes(); }

 private:
  static constexpr size_t kLargestRequest = size_t{1} << kAddressBits;
  static constexpr size_t kPutOff = 1024;
  static constexpr int kEvictedAtOnce = 32;

  struct Deferred {
    std::atomic<void*> block{nullptr};
  };

  // Where a block is.
  enum class Placed : uint8_t { kInTable, kInEmergency, kNowhere, kFaultInQueue };
  // How a free ended. kNotNow: no lock may be taken.
  enum class Freed : uint8_t { kDone, kNotNow, kFault, kFaultInQueue };

  void FinishAllocation(const char* call, size_t size, void* user);
  void FinishFree();
  TCMALLOC_NOINLINE void* AllocatePlainSlow(size_t size, BlockFamily family, const CallSite& site,
                                            StackId stack);
  TCMALLOC_NOINLINE void* AllocateSlow(const Request& request, size_t bytes, uint8_t size_class,
                                       StackId stack);
  static BlockRecord* FindBySeal(const void* block);
  BlockRecord* Find(const void* block);
  static size_t TrySizeOf(const void* block);
  static bool FindSizeBySeal(const void* block, size_t* size);
  template <typename F>
  void ForEachBlock(F f);
  Placed PlaceSmall(const Request& request, StackId stack, size_t bytes, void** user, Fault* fault);
  TCMALLOC_NOINLINE Placed PlaceNew(const SlowPath& slow_path, uint32_t place,
                                    const Request& request, StackId stack, size_t bytes,
                                    uint8_t size_class, void** user);
  TCMALLOC_NOINLINE Placed PlaceLarge(const Request& request, StackId stack, size_t bytes,
                                      void** user);
  static void Describe(const Request& request, StackId stack, BlockRecord* block);
  static void LayOut(const Request& request, char* base, size_t bytes, BlockRecord* block);
  static size_t PaddingFor(const Request& request);
  static size_t BytesFor(const Request& request);
  BlockRecord* TakeRecord(uint32_t place);
  void MakeKnown(BlockRecord* record);
  BlockRecord* Register(uint32_t place, const BlockRecord& block);
  static bool IsSmall(size_t bytes);
  static uint8_t SpareClassFor(const Request& request, size_t bytes);
  static void Reuse(uint32_t place, BlockRecord* spare, const Request& request, StackId stack);
  void* TryReuse(const Request& request, uint8_t size_class, StackId* stack);
  TCMALLOC_COLD void ReportSpare(const BlockRecord& spare);
  TCMALLOC_COLD void ShrinkInPlace(void* block, size_t size);
  bool GiveBackWaiting(size_t bytes, Fault* fault);
  template <typename F>
  bool EmptyOthers(F empty);
  bool TryFree(void* block, BlockRecord* record, const ReleaseClaim& claim, StackId* stack);
  TCMALLOC_NOINLINE void FreeSlow(void* block, BlockRecord* record, const ReleaseClaim& claim,
                                  StackId stack);
  TCMALLOC_NOINLINE void FreeWithLock(void* block, const ReleaseClaim& claim, StackId stack);
  TCMALLOC_NOINLINE void FreePlainSlow(void* block, BlockRecord* record, const CallSite& site,
                                       StackId stack);
  BlockRecord* BeginFree(void* block, const ReleaseClaim& claim, StackId stack, Fault* fault);
  Freed FreeInSlowPath(void* block, const ReleaseClaim& claim, StackId stack, Fault* fault);
  void FillFreed(BlockRecord* freed);
  bool Evict(const SlowPath& slow_path, uint32_t place, BlockRecord* victim, Fault* fault);
  Fault FaultOfUnknown(const void* address);
  void BlameBlockBefore(Fault* fault);
  [[noreturn]] TCMALLOC_COLD void Report(Fault* fault, const char* call);
  void PutOff(void* block);
  void FreePutOff();
  void CheckAtIntervals();

  RecordStore records_;
  CheckedBlockTable table_;
  FreeQueue queue_;
  std::atomic<uint64_t> allocations_{0};  // counted for TCMALLOC_CHECK_INTERVAL alone
  std::atomic<size_t> put_off_count_{0};
  Deferred put_off_[kPutOff];
};

extern constinit DebugHeap debug_heap;

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_DEBUG_HEAP_H_
