// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks in pages of their own, between pages that nobody may touch.

#ifndef TCMALLOC_GUARDED_GUARDED_BLOCKS_H_
#define TCMALLOC_GUARDED_GUARDED_BLOCKS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "options/options.h"
#include "pages/span.h"

namespace tcmalloc {

// A stack and the thread that it is of.
struct GuardedStack {
  static constexpr size_t kMostFrames = 32;

  // Keeps the innermost frames of the running thread.
  void Set(std::span<void* const> frames);

  void* frames[kMostFrames];
  uint32_t count;
  uint32_t thread;  // the kernel's number
};

// A place for one block: a page between two guard pages. A slot is kUnused, then kLive and kFreed
// in turn. Whoever reports a fault reads it without a lock.
struct GuardedSlot {
  enum class State : uint8_t { kUnused, kLive, kFreed };

  std::atomic<State> state;
  std::atomic<bool> reported;  // since it became live
  uint16_t next_free;          // guarded by GuardedBlocks' lock
  SampleId sample;
  uintptr_t begin;  // of the block
  size_t size;      // that the program asked for
  GuardedStack allocated;
  GuardedStack freed;

  uintptr_t end() const { return begin + size; }
};

// Decides which samples are guarded, and has the slots. The pages lie side by side in memory of
// their own: guard, slot, guard, slot, ..., guard. All are inaccessible but those of live blocks.
//
// Thread safe. Functions that take or free blocks are called in the slow path, so that no fork
// takes place meanwhile, and may change errno.
class GuardedBlocks {
 public:
  // Samples by default between two guarded blocks.
  static constexpr int64_t kSamplesPerGuarded = 50;

  constexpr GuardedBlocks() = default;
  GuardedBlocks(const GuardedBlocks&) = delete;
  GuardedBlocks& operator=(const GuardedBlocks&) = delete;

  void Configure(const Options& options);

  // Guards blocks from now on, if the interval is not negative.
  void Activate() { active_ = true; }
  // The mean bytes that the program allocates between two guarded blocks; 0 guards every sample
  // that fits, and a negative number none.
  int64_t interval() const;
  void set_interval(int64_t bytes) {
    interval_ = bytes;
    interval_is_set_ = true;
  }

  // Returns memory for a sample of `size` bytes, aligned to `alignment` (0: to what malloc
  // promises), or null if it is not to be guarded or cannot be. `period` is the mean distance of
  // the samples among which it was drawn.
  void* New(size_t size, size_t alignment, uint64_t period) {
    return active_ && IsChosen(period) ? NewChosen(size, alignment) : nullptr;
  }
  // Names the sample of a block that the caller has got from New, and the stack of its allocation.
  void SetSample(const void* block, SampleId sample, std::span<void* const> frames);

  // Takes back an address of the range, which some call wants to free, and returns its sample. Ends
  // the process if no live block begins there, or if bytes around the block were written.
  SampleId Delete(const void* block, std::span<void* const> frames);
  // Returns the bytes of a live block. Ends the process as Delete does.
  size_t SizeOf(const void* block, const char* call) const;

  // Returns the slot whose block an access at this address of the range was meant for, most likely:
  // the nearest that ever had one. Null if there is none.
  GuardedSlot* FindNearest(uintptr_t address) const;

 private:
  static constexpr uint16_t kNoSlot = UINT16_MAX;

  bool IsChosen(uint64_t period);
  void* NewChosen(size_t size, size_t alignment);
  bool EnsureMapped() TCMALLOC_REQUIRES(lock_);
  GuardedSlot* TakeSlot() TCMALLOC_EXCLUDES(lock_);
  void ReturnSlot(GuardedSlot* slot) TCMALLOC_EXCLUDES(lock_);

  char* PageOf(const GuardedSlot* slot) const;
  GuardedSlot* SlotAt(uintptr_t address) const;
  GuardedSlot* LiveSlot(const void* block, const char* call) const;
  void CheckSlack(const GuardedSlot* slot) const;

  Relaxed<bool> active_ = false;
  Relaxed<bool> interval_is_set_ = false;
  Relaxed<int64_t> interval_ = 0;
  Relaxed<uint64_t> random_ = 0;

  SpinLock lock_{LockRank::kProfile};
  // Slots in the order in which they are taken: a slot that is freed waits until all others have
  // been taken.
  uint16_t first_free_ TCMALLOC_GUARDED_BY(lock_) = kNoSlot;
  uint16_t last_free_ TCMALLOC_GUARDED_BY(lock_) = kNoSlot;
  bool failed_ TCMALLOC_GUARDED_BY(lock_) = false;
  // Set once, before the range is.
  GuardedSlot* slots_ = nullptr;
  size_t slot_count_ = 0;
  size_t page_bytes_ = 0;

  std::atomic<uint64_t> guarded_{0};  // blocks since the start
};

extern constinit GuardedBlocks guarded_blocks;

}  // namespace tcmalloc

#endif  // TCMALLOC_GUARDED_GUARDED_BLOCKS_H_
