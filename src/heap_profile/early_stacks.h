// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks of a small program, which are copied and not walked until somebody wants to see them.

#ifndef TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
#define TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_

#include <atomic>
#include <bitset>
#include <cstddef>
#include <cstdint>

#include "heap_profile/stack_table.h"
#include "unwind/machine.h"

namespace tcmalloc {

// A walk reads unwind tables of the program and of each library on the stack, which the kernel maps
// sixteen pages at a time: some 400 KiB, more than a tenth of what many small programs have. A copy
// of the stack takes as many pages as the stack has.
//
// Each copy belongs to an open stack of the StackTable, which gets its frames when the copies are
// walked. A copy whose stack nobody refers to any more makes room for the next one, with its stack.
//
// Thread safe: a thread that finds another one, or what its signal handler interrupted, at work
// here does without. All zero at first.
class EarlyStacks {
 public:
  constexpr EarlyStacks() = default;
  EarlyStacks(const EarlyStacks&) = delete;
  EarlyStacks& operator=(const EarlyStacks&) = delete;

  // Copies the stack of the running thread. Returns a stack of `stacks` with a reference for the
  // caller; 0 if the stack has to be walked now, because it is no thread's own, is deep, or there
  // are many copies in use.
  StackId Add(StackTable& stacks);

  // Gives all stacks their frames. Those that another thread is adding may be left out.
  void WalkAll(StackTable& stacks);

  // Called in the child of a fork, by its only thread.
  void ForgetOthersAfterFork() { busy_.store(false, std::memory_order_relaxed); }

  size_t copies() const;

 private:
  static constexpr size_t kMostCopies = 48;
  static constexpr size_t kUnitBytes = 512;
  static constexpr size_t kUnits = 384;
  static constexpr size_t kMostStackBytes = size_t{24} << 10;

  // Registers, and behind them the stack.
  struct Copy {
    StackId stack = 0;  // 0 if there never was one, or it has its frames
    uint16_t first = 0;
    uint16_t units = 0;  // 0 if there is no copy
  };

  bool TryEnter() { return !busy_.exchange(true, std::memory_order_acquire); }
  void Leave() { busy_.store(false, std::memory_order_release); }
  void FreeUnused(StackTable& stacks);
  Copy* TakeCopy(StackTable& stacks, size_t units);
  size_t FindUnits(size_t units) const;
  void FreeUnits(Copy& copy);
  std::byte* memory_of(const Copy& copy) { return memory_ + copy.first * kUnitBytes; }

  std::atomic<bool> busy_{false};
  Copy copies_[kMostCopies] = {};
  std::bitset<kUnits> used_;
  alignas(sizeof(uintptr_t)) std::byte memory_[kUnits * kUnitBytes] = {};
};

extern constinit EarlyStacks early_stacks;

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_EARLY_STACKS_H_
