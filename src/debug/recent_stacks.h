// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks that a thread was found in lately, by the words that lead to them.

#ifndef TCMALLOC_DEBUG_RECENT_STACKS_H_
#define TCMALLOC_DEBUG_RECENT_STACKS_H_

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "debug/kept_stacks.h"
#include "debug/own_place.h"
#include "debug/program_stack.h"
#include "heap_profile/stack_table.h"
#include "system/mapped_object.h"
#include "thread/current_thread.h"
#include "thread/fork_gate.h"
#include "unwind/machine.h"
#include "unwind/quick_walk.h"
#include "unwind/stack_frames.h"

namespace tcmalloc {

// A walk's result depends on where it begins and on the words that it reads. An entry has both, and
// the stack that they led to. Where each word is still what it was, the stack is the same, and
// nothing is walked, hashed or compared frame by frame.
//
// A word that lies further out is read only if all before it are right, so the frames up to there
// are on the stack, and with them the next word. Entries outlive the objects whose functions were
// on the stack; then no return address of these is on a stack any more, and where another object
// took its place, the addresses that an entry names are those that were read again.
//
// A thread has one set to itself, unless there are very many. A set is claimed for each use,
// because a signal handler may interrupt one.
class RecentStacks {
 public:
  constexpr RecentStacks() = default;
  RecentStacks(const RecentStacks&) = delete;
  RecentStacks& operator=(const RecentStacks&) = delete;

  // Claims a set that threads share. Returns false while another thread uses it, or what this
  // signal handler has interrupted. Acquire pairs with the release in Release: the entries are
  // complete.
  bool TryClaim() { return user_.exchange(&kAnyUser, std::memory_order_acquire) == nullptr; }
  // Claims a set that `thread` has to itself. A mark of another thread was left by one that a fork
  // made vanish.
  TCMALLOC_ALWAYS_INLINE bool TryClaimOwn(ThreadId thread) {
    if (TCMALLOC_UNLIKELY(user_.load(std::memory_order_relaxed) == thread)) return false;
    user_.store(thread, std::memory_order_relaxed);
    // Pairs with TryClaimOwn in a signal handler, which must find the mark before any change.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    return true;
  }
  // Release pairs with the acquire in TryClaim.
  void Release() { user_.store(nullptr, std::memory_order_release); }

  // The walk of whoever has claimed this.
  QuickWalk& quick_walk() { return quick_walk_; }
  // The words that it read. They would take half a KiB of the thread's stack.
  WalkReads& walk_reads() { return walk_reads_; }
  // The stacks that such walks led to.
  KeptStacks& kept_stacks() { return kept_stacks_; }

  // Returns the stack above `site` with a reference more, if the set has one to give; 0 otherwise.
  TCMALLOC_ALWAYS_INLINE StackId TryFind(const CallSite& site) {
    Entry* entry = FindEntry(site);
    if (TCMALLOC_UNLIKELY(entry == nullptr || entry->held == 1)) return 0;
    --entry->held;
    return entry->stack;
  }
  // Returns the stack above `site` with a reference more; 0 if it is not known.
  TCMALLOC_ALWAYS_INLINE StackId Find(const CallSite& site, StackTable& stacks) {
    Entry* entry = FindEntry(site);
    if (TCMALLOC_UNLIKELY(entry == nullptr)) return 0;
    if (TCMALLOC_UNLIKELY(entry->held == 1)) {
      if (!stacks.Retain(entry->stack, kRetained)) return 0;
      entry->held += kRetained;
    }
    --entry->held;
    return entry->stack;
  }

  // Keeps one in eight where no stack has been found for long: a recursion, for which no set is
  // large enough, is walked faster without it.
  bool IsWorthAdding() { return ++misses_ < kManyMisses || misses_ % kOneIn == 0; }

  // Adds a stack to which the caller has a reference, with some more to give.
  void Add(const CallSite& site, const WalkReads& reads, StackId stack, StackTable& stacks);

 private:
  static constexpr size_t kLog2Sets = 5;
  static constexpr size_t kWays = 8;
  static constexpr uint32_t kManyMisses = 256;
  static constexpr uint32_t kOneIn = 8;
  // Words are compared that many at a time; the last one may be there several times.
  static constexpr uint32_t kStep = 4;
  static_assert(WalkReads::kMost % kStep == 0);
  // References are taken that many at a time, so that most calls change no memory that threads
  // share.
  static constexpr uint32_t kRetained = 64;

  // Keeps no register that no frame address was computed from, because it may be the program's last
  // pointer to a block.
  struct alignas(64) Entry {
    uintptr_t stack_pointer;
    uintptr_t return_address;
    StackId stack;
    uint32_t held;                      // references to the stack; one at least, if there is one
    uint32_t count;                     // of words, with those that fill the last step
    uintptr_t frame_pointer;            // at the call site, if it was read; 0 if it was not
    uint16_t places[WalkReads::kMost];  // of words above the stack pointer, in words
    uintptr_t values[WalkReads::kMost];
  };
  static constexpr uintptr_t kMostPlaces = uintptr_t{1} << 16;

  // Where a call site is looked for: the set, and a byte that most others do not have.
  struct Key {
    size_t set;
    uint8_t tag;
  };
  static Key KeyOf(const CallSite& site) {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    const uint64_t hash = ((site.stack_pointer >> 4) + site.return_address) * kGolden;
    return {hash >> (64 - kLog2Sets), static_cast<uint8_t>(hash >> 48)};
  }

  // Returns the entry by which the stack above `site` is known, or null.
  TCMALLOC_ALWAYS_INLINE Entry* FindEntry(const CallSite& site) {
    if (TCMALLOC_UNLIKELY(!IsWorthSearching())) return nullptr;
    const Key key = KeyOf(site);
    Entry* entries = entries_[key.set];
    for (uint64_t ways = WaysOf(key); ways != 0; ways &= ways - 1) {
      Entry& entry = *OpaqueToOptimizer(&entries[std::countr_zero(ways) / 8]);
      if (TCMALLOC_LIKELY(IsOf(entry, site) && IsAsItWas(entry, site))) {
        misses_ = 0;
        return &entry;
      }
    }
    return nullptr;
  }
  static uint64_t InAllWays(uint8_t byte) { return uint64_t{byte} * 0x0101'0101'0101'0101; }
  // Returns the upper bits of the bytes of the ways whose tag is that of the key, and maybe of
  // others behind the first of these.
  TCMALLOC_ALWAYS_INLINE uint64_t WaysOf(const Key& key) const {
    const uint64_t difference = tags_[key.set] ^ InAllWays(key.tag);
    return (difference - InAllWays(1)) & ~difference & InAllWays(0x80);
  }
  static bool IsOf(const Entry& entry, const CallSite& site) {
    return entry.stack_pointer == site.stack_pointer &&
           entry.return_address == site.return_address &&
           (entry.frame_pointer == 0 || entry.frame_pointer == site.frame_pointer);
  }

  // After so many misses, there is mostly nothing to be found.
  bool IsWorthSearching() const { return misses_ < kManyMisses || misses_ % kOneIn == kOneIn / 2; }

  static void AddWord(const WalkReads::Read& read, const CallSite& site, Entry& entry);

  TCMALLOC_ALWAYS_INLINE static bool HasWord(const Entry& entry, const CallSite& site, size_t i) {
    const uintptr_t word = machine::LoadWord(site.stack_pointer + entry.places[i] * sizeof(word));
    return machine::StripAuthentication(word) == entry.values[i];
  }
  // Return addresses mostly differ, if any do, in the innermost frames.
  TCMALLOC_ALWAYS_INLINE static bool IsAsItWas(const Entry& entry, const CallSite& site) {
    const size_t count = entry.count;
    for (size_t i = 0; i < count; i += kStep) {
      static_assert(kStep == 4);
      if (!HasWord(entry, site, i) || !HasWord(entry, site, i + 1) ||
          !HasWord(entry, site, i + 2) || !HasWord(entry, site, i + 3)) {
        return false;
      }
    }
    return true;
  }

  static constexpr char kAnyUser = 0;

  std::atomic<ThreadId> user_{nullptr};
  uint32_t next_ = 0;    // the way that makes room
  uint32_t misses_ = 0;  // since a stack was found
  QuickWalk quick_walk_;
  WalkReads walk_reads_ = {};
  KeptStacks kept_stacks_;
  // The tags of a set, a byte for each way.
  static_assert(kWays == sizeof(uint64_t));
  uint64_t tags_[size_t{1} << kLog2Sets] = {};
  Entry entries_[size_t{1} << kLog2Sets][kWays] = {};
};

// The sets of all places, each mapped when its first thread needs it.
extern constinit MappedObject<RecentStacks> recent_stacks[kPlaces];

// Returns a set that nobody else uses, for the caller to release; null if there is none, or no
// memory for it. The same thread gets the same one each time.
RecentStacks* ClaimRecentStacks();

// Returns a stack as TryFind does. Called inside the slow path by a thread with that place of its
// own.
TCMALLOC_ALWAYS_INLINE StackId FindRecentStack(uint32_t place, const CallSite& site) {
  RecentStacks* recent = recent_stacks[place].get();
  if (TCMALLOC_UNLIKELY(recent == nullptr || !recent->TryClaimOwn(&current_thread))) return 0;
  const StackId stack = recent->TryFind(site);
  recent->Release();
  return stack;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RECENT_STACKS_H_
