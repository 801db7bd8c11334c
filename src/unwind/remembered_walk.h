// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Walks that begin where the last one of the same thread found the way already.

#ifndef TCMALLOC_UNWIND_REMEMBERED_WALK_H_
#define TCMALLOC_UNWIND_REMEMBERED_WALK_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "unwind/loaded_objects.h"
#include "unwind/machine.h"
#include "unwind/own_frames.h"
#include "unwind/stack_frames.h"
#include "unwind/walker.h"

namespace tcmalloc {

// The frames of a walk. The frame of a function that is still in the same call has the same stack
// pointer and the same address of its code, so a walk that comes to such a frame reads only what
// the remembered one read from there on: the return addresses, and the base registers that frame
// addresses were computed from. Where all that is as it was, and the code belongs to the same
// objects, the tables would lead to the same callers. Every word is read again, so a stack that has
// changed is never taken for the old one.
//
// Frames of this library, from which a walk has returned before the next one begins, are passed in
// one step (unwind/own_frames.h).
//
// A walk has it to itself: TryClaim refuses while another walk does, be it that of another thread
// or one that a signal handler has interrupted.
class RememberedWalk {
 public:
  enum class Outcome : uint8_t { kDone, kNeedsRegister };

  constexpr RememberedWalk() = default;
  RememberedWalk(const RememberedWalk&) = delete;
  RememberedWalk& operator=(const RememberedWalk&) = delete;

  // Acquire pairs with the release in Release: the frames of the last walk are complete.
  bool TryClaim() { return !busy_.exchange(true, std::memory_order_acquire); }
  // Release pairs with the acquire in TryClaim.
  void Release() { busy_.store(false, std::memory_order_release); }

  // For the walker, which lives as long as the claim.
  KnownObjects& objects() { return objects_; }
  TableMemory& tables() { return tables_; }

  // Moves `walker` up and stores what is asked for. `skip` and `limit` are those of CaptureCallers.
  Outcome Walk(Walker& walker, const StackFrames& frames, int skip, int* count);

  // Tells what the last walk, which found `count` frames and skipped none but the first, read.
  void TellReads(const StackFrames& frames, int count, WalkReads* reads) const;

  // Tests: the frames that are remembered.
  size_t size() const { return kept_; }
  void CheckInvariants() const;

 private:
  static constexpr size_t kMost = 80;

  // A frame and the step to its caller. The last frame has made none yet.
  struct Frame {
    uintptr_t sp;
    uintptr_t pc;
    uintptr_t base;              // of the caller's frame address, if it is not the stack pointer
    uintptr_t frame_pointer_at;  // where the step found the caller's, 0 if it was the same
    uintptr_t extra_at;          // likewise
    CompactRule::Kind kind;      // kNone of one that has made no step
    // The bits that a copy has to look at: that of the object that the rule is from, and kKind
    // unless the kind is kFromStackPointer.
    uint32_t asks;
  };
  static constexpr uint32_t kKind = uint32_t{1} << 31;

  // The part of the request that is not there yet.
  struct Wanted {
    int skip;
    void** next;
    void** end;

    // Adds a frame. Returns true if it is the last one.
    bool Add(uintptr_t pc);
    bool HasRoomFor(size_t frames) const {
      return static_cast<ptrdiff_t>(frames) <= end - next + skip;
    }
  };

  size_t first() const { return kMost - kept_; }
  bool PassOwnFrames(Walker& walker, Wanted* wanted);
  void LearnOwnFrames(uintptr_t sp, uintptr_t pc);
  bool Meets(Walker& walker);
  enum class Copied : uint8_t { kAll, kUpToHere };
  Copied Copy(Walker& walker, Wanted* wanted);
  bool Leads(Walker& walker, size_t at);
  bool HasBase(const Walker& walker, const Frame& frame, size_t at) const;
  uintptr_t LastSaved(uintptr_t Frame::* place, size_t end) const;
  bool TellStep(size_t at, WalkReads* reads) const;
  void GoOnFrom(Walker& walker, size_t at);
  static Frame At(const Walker& walker);
  void Note(Frame frame, Walker& walker, StepResult result);
  void Add(Frame frame);
  void Keep(bool joined);

  static uintptr_t ReturnAddressAt(const Frame& frame, const Frame& caller) {
    return machine::kExtraIsReturnAddress ? frame.extra_at : caller.sp - sizeof(uintptr_t);
  }

  std::atomic<bool> busy_{false};
  bool notes_ = false;      // the frames since the last one that was met follow each other
  uint32_t new_count_ = 0;  // of this walk
  size_t kept_ = 0;         // of frames_, the last ones
  KnownObjects objects_;
  OwnFrames own_;
  Frame frames_[kMost] = {};  // from first() on, the innermost first
  Frame new_frames_[kMost] = {};
  TableMemory tables_;  // last, because most walks never touch it
};

// Returns one that no other walk uses, for the caller to release; null if there is none. The same
// thread gets the same one each time, and may share it with others.
RememberedWalk* ClaimRememberedWalk();

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_REMEMBERED_WALK_H_
