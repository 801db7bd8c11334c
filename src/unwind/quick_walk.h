// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks stacks quickly, by rules that earlier walks have read from the unwind tables.

#ifndef TCMALLOC_UNWIND_QUICK_WALK_H_
#define TCMALLOC_UNWIND_QUICK_WALK_H_

#include <cstddef>
#include <cstdint>

#include "unwind/loaded_objects.h"
#include "unwind/stack_frames.h"

namespace tcmalloc {

// Compact rules by return address, for a walk that needs no other register than the frame pointer.
// A rule is right as long as the object from whose tables it was read stays loaded: each walk
// checks once that the objects which may be unloaded are still there. By induction from the
// innermost frame, each address that is taken for a return address is one.
//
// If a function is on the stack several times, only its innermost frame is stored. A recursion thus
// has few different stacks, however deep it is and whichever way it took.
//
// Not thread safe: each user has an object of its own.
class QuickWalk {
 public:
  static constexpr uint32_t kMostFrames = 32;

  // A function that is making a call.
  struct Frame {
    uintptr_t sp;  // behind the return address
    uintptr_t frame_pointer;
    uintptr_t pc;  // the return address
  };

  constexpr QuickWalk() = default;
  QuickWalk(const QuickWalk&) = delete;
  QuickWalk& operator=(const QuickWalk&) = delete;

  // Walks `limit` frames, kMostFrames at most. Stores return addresses from frame.pc on and returns
  // their number; returns 0 if some frame needs a full walk. Stores the words that were read in
  // *reads, unless it is null.
  uint32_t Walk(Frame frame, void** addresses, uint32_t limit, WalkReads* reads);

 private:
  static constexpr int kLog2Sets = 8;
  static constexpr size_t kWays = 4;

  // How to leave a function: a compact rule, taken apart.
  struct Entry {
    uintptr_t pc;
    uintptr_t function;         // where it begins
    uint32_t frame_offset;      // from the base to the caller's stack pointer
    uint32_t return_slot;       // from there down to the return address
    uint32_t pointer_slot;      // and to the caller's frame pointer; 0 if it is not saved
    uint32_t object : 30;       // its bit among those of a walk; 0 of one that stays
    bool by_frame_pointer : 1;  // is the base, and not the stack pointer
    bool outermost : 1;
  };
  static_assert(KnownObjects::kMost <= 30);

  static size_t SetOf(uintptr_t pc) {
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    return pc * kGolden >> (64 - kLog2Sets);
  }
  const Entry* EntryOf(uintptr_t pc, ObjectsOfWalk& objects);
  const Entry* Learn(uintptr_t pc, ObjectsOfWalk& objects);
  void ForgetLostObjects();

  KnownObjects objects_;
  Entry entries_[size_t{1} << kLog2Sets][kWays] = {};  // of each set, the last one learnt first
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_QUICK_WALK_H_
