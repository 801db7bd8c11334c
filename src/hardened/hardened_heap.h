// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The hardened mode: blocks of the default allocator, each with a state and bytes behind it that
// nobody may write.

#ifndef TCMALLOC_HARDENED_HARDENED_HEAP_H_
#define TCMALLOC_HARDENED_HARDENED_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "allocator/block_functions.h"
#include "hardened/block_map.h"
#include "hardened/block_pools.h"
#include "hardened/canary.h"
#include "hardened/guard_budget.h"
#include "hardened/quarantine.h"

namespace tcmalloc {

// Takes no lock of its own, so that it works wherever the allocator below does: in a signal
// handler, around a fork and in a thread that ends. docs/subsystems/hardened.md explains it.
class HardenedHeap {
 public:
  constexpr HardenedHeap() = default;
  HardenedHeap(const HardenedHeap&) = delete;
  HardenedHeap& operator=(const HardenedHeap&) = delete;

  // Called once, before all others, when the options are known. Returns false if there is no
  // memory.
  [[nodiscard]] bool Initialize(const Options& options);

  // Returns null if there is no memory.
  void* Allocate(BlockRequest request);
  // Works as Allocate without an alignment, faster.
  void* AllocatePlain(size_t size, BlockFamily family);
  // Frees a block, which is not null, after it was checked.
  void Free(void* block, const BlockClaim& claim);

  // The fast paths, with the thread's pool. They refuse whatever they do not like, and then
  // Allocate and Free do all of it, and tell what is wrong.

  // Allocates without an alignment. Returns null if it refuses.
  TCMALLOC_ALWAYS_INLINE void* TryAllocate(size_t size, BlockFamily family);
  // Frees a block for which the program claims no alignment, and perhaps a size.
  TCMALLOC_ALWAYS_INLINE bool TryFree(void* block, BlockFamily family,
                                      size_t size = BlockClaim::kUnknown);
  // Do the same for blocks that have at most Canary::kShortSlack bytes more than the program asks
  // for, in fewer instructions.
  template <bool kIsLong>
  TCMALLOC_ALWAYS_INLINE void* TryAllocateShort(size_t size, BlockFamily family);
  TCMALLOC_ALWAYS_INLINE bool FindShort(void* block, BlockFamily family, ShortBlock* known) const;
  template <bool kIsLong>
  TCMALLOC_ALWAYS_INLINE bool TryFreeShort(void* block, ShortBlock known,
                                           size_t size = BlockClaim::kUnknown);
  // Makes the next blocks of `size` bytes ready for the fast paths if none are. Returns false if
  // there are none.
  bool PrepareTurn(size_t size);
  // Returns the block for another size: the same one, or a new one with the contents. Null leaves
  // the block as it was. Requires block != nullptr and size > 0.
  void* Reallocate(void* block, size_t size);
  void SetFamily(void* block, BlockFamily family);
  // Returns the bytes that the program asked for, or what Padded made of them; 0 for null.
  size_t SizeOf(const void* block, const char* call);
  size_t SizeFor(size_t size, size_t alignment) const;
  // Returns the bytes that a program gets that asks for `size` bytes without an alignment: all up
  // to the last one of the block's last granule, once it has asked for the sizes of many blocks.
  // Such a program fills its blocks, and otherwise reallocates them for a few bytes each time.
  size_t Padded(size_t size) const { return size | padding_.load(std::memory_order_relaxed); }
  // Returns true if a live block begins there.
  bool Owns(const void* block) const;

  // Checks live blocks and those in quarantine, a bounded number of them.
  void CheckAll();

 private:
  static constexpr size_t kMostLarge = 16;
  // A program asks for the sizes of many blocks if it has done so kManyAsks times more often than
  // kFewAsks times for each group of blocks that it got.
  static constexpr int kManyAsks = 4096;
  static constexpr int kFewAsks = 2;

  struct Introduced {
    char* start;
    BlockMap::Byte* state;
  };

  void* AllocateBelow(const BlockRequest& request);
  void* Take(const BlockRequest& request, LiveBlock* block, bool* zeroed);
  void* TakeLarge(const BlockRequest& request, LiveBlock* block, bool* zeroed);
  static char* GuardPageOf(char* block, const LiveBlock& live);
  static void Unguard(char* block, const LiveBlock& live);
  void* TakeSmall(const BlockRequest& request, LiveBlock* block);
  Introduced TakeNew(uint8_t part, const LiveBlock& block);
  TCMALLOC_NOINLINE Introduced Introduce(uint8_t part, char* start, const LiveBlock& block);
  TCMALLOC_COLD void* TakeSecond(uint8_t part, size_t wanted, uint8_t size_class);
  void* Shuffle(uint8_t part, void* fresh, size_t wanted, uint8_t size_class);
  bool Publish(void* start, const LiveBlock& block);

  TCMALLOC_ALWAYS_INLINE static bool IsLive(const BlockMap::Byte* state);
  TCMALLOC_ALWAYS_INLINE uint8_t CheckLive(const void* block, const BlockMap::Byte* state,
                                           const char* call) const;
  TCMALLOC_ALWAYS_INLINE void CheckClaim(const void* block, const LiveBlock& live,
                                         const BlockClaim& claim) const;
  void CheckSizeAndAlignment(const void* block, LiveBlock live, BlockClaim claim) const;
  TCMALLOC_ALWAYS_INLINE void CheckSurroundings(const char* block, const LiveBlock& live,
                                                const char* call) const;
  TCMALLOC_ALWAYS_INLINE bool HasFront(const char* block) const;
  size_t SizeToGive(size_t size) const;
  void* AllocateGiven(size_t size, BlockFamily family);
  void Resize(char* block, BlockMap::Byte* state, LiveBlock live, size_t size) const;
  TCMALLOC_COLD void ShrinkInPlace(char* block, BlockMap::Byte* state, size_t size) const;
  void NoteAsk();
  void NoteGroup();
  bool IsSizeOf(const LiveBlock& block, size_t size) const;
  TCMALLOC_ALWAYS_INLINE bool Retire(BlockMap::Byte* state, uint8_t live) const;
  TCMALLOC_COLD void GuardFront(char* block, size_t capacity) const;

  TCMALLOC_COLD void FreeUnknown(void* block, const BlockMap::Byte* state, const char* call);
  static size_t FilledSize(const LiveBlock& live);
  void FreeSmall(char* block, const LiveBlock& live);
  TCMALLOC_NOINLINE void PutInQuarantine(char* block, uint8_t size_class);
  template <bool kIsLong>
  TCMALLOC_NOINLINE void LeaveOldest(uint8_t part, uint8_t size_class, size_t most);
  char* TakeWaiting(uint8_t part, uint8_t size_class);
  bool PrepareGroup(uint8_t part, uint8_t size_class);
  bool TakeGroup(uint8_t part, uint8_t size_class);
  bool TakeRun(uint8_t part, uint8_t size_class);
  TCMALLOC_ALWAYS_INLINE void Leave(void* block, uint8_t size_class);
  TCMALLOC_ALWAYS_INLINE bool TryResize(char* block, BlockMap::Byte* state, const LiveBlock& live,
                                        size_t size) const;
  TCMALLOC_COLD void LeaveAsSample(void* block, uint8_t size_class);
  void FreeLarge(char* block, LiveBlock live);
  bool KeepFilled(char* block, const LiveBlock& live, size_t bytes);
  GuardKind ForbidWithin(char* start, size_t bytes, int calls, size_t lost);
  TCMALLOC_ALWAYS_INLINE const char* FindDamage(const void* block, uint8_t size_class) const;
  TCMALLOC_ALWAYS_INLINE void CheckFreed(const void* block, uint8_t size_class) const;
  void* TakeFromPool(uint8_t part);
  static uint8_t ClassOfWaiting(const void* block);
  bool WasFreed(const void* block) const;
  bool EmptyQuarantine();
  TCMALLOC_COLD bool GiveUpWaiting(size_t size);
  void CheckQuarantine();
  void GiveBack(void* block);
  void EvictLarge(void* block);

  BlockMap map_;
  Canary canary_;
  BlockPools pools_;
  Quarantine quarantine_;  // of larger blocks, and of threads without a pool
  Quarantine fresh_;       // objects that are handed out in random order
  // Blocks in spans of their own that were freed. Most are not accessible.
  std::atomic<void*> large_[kMostLarge] = {};
  std::atomic<uint64_t> large_random_{0};
  std::atomic<size_t> filled_bytes_{0};  // of those that are
  GuardBudget budget_;
  Filling filling_;                        // of small blocks
  const char* single_threaded_ = nullptr;  // not 0 if the process has a single thread
  // Written without regard to other threads: a few asks more or less are no matter.
  std::atomic<int> asks_{0};
  std::atomic<size_t> padding_{0};  // bits that are set in the sizes of blocks
  bool zeroes_ = false;
  bool checks_claims_ = true;
};

extern constinit HardenedHeap hardened_heap;

}  // namespace tcmalloc

#endif  // TCMALLOC_HARDENED_HARDENED_HEAP_H_
