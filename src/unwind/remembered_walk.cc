// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/remembered_walk.h"

#include <algorithm>
#include <span>

#include "base/attributes.h"
#include "base/check.h"
#include "system/mapped_object.h"
#include "unwind/claim_of_thread.h"
#include "unwind/object_list.h"

namespace tcmalloc {
namespace {

// Two threads that share one walk on as if nothing was remembered.
constinit MappedObject<RememberedWalk> walks[32];

}  // namespace

RememberedWalk* ClaimRememberedWalk() {
  // A list of objects may be out of date.
  if (TCMALLOC_UNLIKELY(UsesObjectList())) return nullptr;
  return ClaimOfThread(walks);
}

TCMALLOC_ALWAYS_INLINE bool RememberedWalk::Wanted::Add(uintptr_t pc) {
  if (TCMALLOC_UNLIKELY(skip > 0)) {
    --skip;
    return false;
  }
  *next++ = reinterpret_cast<void*>(pc);
  return next == end;
}

RememberedWalk::Outcome RememberedWalk::Walk(Walker& walker, const StackFrames& frames, int skip,
                                             int* count) {
  notes_ = true;
  new_count_ = 0;
  if (TCMALLOC_UNLIKELY(objects_.lost_some)) {
    kept_ = 0;
    objects_.lost_some = false;
  }
  Wanted wanted = {.skip = skip, .next = frames.addresses, .end = frames.addresses + frames.limit};
  const uintptr_t sp = walker.sp();
  const uintptr_t pc = walker.pc();
  // Whoever asks for what is read gets all of it.
  const bool may_pass = frames.reads == nullptr && walker.at_call();
  const bool knows_own = may_pass && PassOwnFrames(walker, &wanted);
  bool joined = false;
  StepResult result = StepResult::kCaller;
  while (result == StepResult::kCaller) {
    if (Meets(walker)) {
      joined = Copy(walker, &wanted) == Copied::kAll;
      if (TCMALLOC_LIKELY(joined)) break;
    } else if (wanted.Add(walker.pc())) {
      if (walker.at_call()) Add(At(walker));
      break;
    }
    const Frame frame = At(walker);
    result = walker.Step();
    Note(frame, walker, result);
  }
  Keep(joined);
  if (TCMALLOC_UNLIKELY(may_pass && !knows_own)) LearnOwnFrames(sp, pc);
  *count = static_cast<int>(wanted.next - frames.addresses);
  return result == StepResult::kNeedsRegister ? Outcome::kNeedsRegister : Outcome::kDone;
}

// Moves the walker to the caller of this library, and adds the frames up to there. Returns false if
// the way is not known. Where it leads beyond what is wanted, the walker stays.
TCMALLOC_ALWAYS_INLINE bool RememberedWalk::PassOwnFrames(Walker& walker, Wanted* wanted) {
  const uintptr_t sp = walker.sp();
  const OwnFrames::Chain* chain = own_.Find(walker.pc(), sp, walker.memory().BytesFrom(sp));
  if (TCMALLOC_UNLIKELY(chain == nullptr)) return false;
  // Beside the callers, the frame of the beginning, and the one that the walk adds next.
  if (TCMALLOC_UNLIKELY(!wanted->HasRoomFor(chain->count + 2))) return true;
  wanted->Add(walker.pc());
  for (const OwnFrames::Caller& caller : chain->view()) wanted->Add(caller.pc);
  const auto saved_at = [sp](uint32_t place) { return place == 0 ? 0 : sp + place - 1; };
  const uintptr_t pc = machine::LoadWord(sp + chain->return_address_at);
  walker.MoveUp(sp + chain->stack_pointer, machine::StripAuthentication(pc),
                saved_at(chain->frame_pointer_place), saved_at(chain->extra_place));
  return true;
}

// Remembers the frames of this library that the last walk began with, at these values of registers.
TCMALLOC_NOINLINE void RememberedWalk::LearnOwnFrames(uintptr_t sp, uintptr_t pc) {
  if (kept_ == 0 || frames_[first()].sp != sp || frames_[first()].pc != pc) return;
  const auto from_begin = [sp](uintptr_t at) { return static_cast<uint32_t>(at - sp); };
  const auto place = [&](uintptr_t saved_at) {
    return saved_at == 0 ? 0 : from_begin(saved_at) + 1;
  };
  OwnFrames::Chain chain = {.begin = pc};
  for (size_t at = first(); at + 1 < kMost; ++at) {
    const Frame& frame = frames_[at];
    const Frame& caller = frames_[at + 1];
    const bool is_simple = frame.kind == CompactRule::Kind::kFromStackPointer;
    if (!is_simple || !IsOfOwnLibrary(frame.pc - 1) || caller.sp - sp >= UINT32_MAX) return;
    const uint32_t return_address_at = from_begin(ReturnAddressAt(frame, caller));
    if (IsOfOwnLibrary(caller.pc - 1)) {
      if (chain.count == OwnFrames::kMostFrames) return;
      chain.callers[chain.count++] = {.return_address_at = return_address_at, .pc = caller.pc};
      continue;
    }
    chain.return_address_at = return_address_at;
    chain.stack_pointer = from_begin(caller.sp);
    chain.frame_pointer_place = place(LastSaved(&Frame::frame_pointer_at, at + 1));
    chain.extra_place = place(LastSaved(&Frame::extra_at, at + 1));
    return own_.Add(chain);
  }
}

// Returns true if the walker is at the first frame that is left. Forgets those that have returned.
TCMALLOC_ALWAYS_INLINE bool RememberedWalk::Meets(Walker& walker) {
  const uintptr_t sp = walker.sp();
  while (kept_ > 0 && frames_[first()].sp < sp) --kept_;
  if (kept_ == 0) return false;
  const Frame& frame = frames_[first()];
  if (frame.sp != sp || frame.pc != walker.pc()) return false;
  return notes_ && walker.at_call() && !objects_.lost_some &&
         walker.memory().Covers(frames_[kMost - 1].sp);
}

// Adds the frames from the one that was met on. Stops at one from which the walker has to step.
TCMALLOC_ALWAYS_INLINE RememberedWalk::Copied RememberedWalk::Copy(Walker& walker, Wanted* wanted) {
  size_t at = first();
  for (;; ++at) {
    if (wanted->Add(frames_[at].pc)) return Copied::kAll;
    if (TCMALLOC_UNLIKELY(!Leads(walker, at))) break;
  }
  if (frames_[at].kind == CompactRule::Kind::kOutermost &&
      walker.objects().Validate(frames_[at].asks & ~kKind, frames_[at].pc - 1)) {
    return Copied::kAll;
  }
  GoOnFrom(walker, at);
  return Copied::kUpToHere;
}

// Returns true if frame `at` still has the caller that is remembered.
TCMALLOC_ALWAYS_INLINE bool RememberedWalk::Leads(Walker& walker, size_t at) {
  const Frame& frame = frames_[at];
  if (TCMALLOC_UNLIKELY(at + 1 == kMost)) return false;
  if (TCMALLOC_UNLIKELY((frame.asks & ~walker.objects().valid()) != 0)) {
    if (frame.kind == CompactRule::Kind::kNone || frame.kind > CompactRule::Kind::kFromExtra ||
        !walker.objects().Validate(frame.asks & ~kKind, frame.pc - 1) ||
        !HasBase(walker, frame, at)) {
      return false;
    }
  }
  const Frame& caller = frames_[at + 1];
  const uintptr_t pc = machine::LoadWord(ReturnAddressAt(frame, caller));
  return machine::StripAuthentication(pc) == caller.pc;
}

// Returns true if the caller's frame address, computed from the registers that frame `at` has now,
// is the remembered one.
bool RememberedWalk::HasBase(const Walker& walker, const Frame& frame, size_t at) const {
  if (frame.kind == CompactRule::Kind::kFromStackPointer) return true;
  const bool by_extra = frame.kind == CompactRule::Kind::kFromExtra;
  const uintptr_t saved_at = LastSaved(by_extra ? &Frame::extra_at : &Frame::frame_pointer_at, at);
  if (saved_at != 0) return machine::LoadWord(saved_at) == frame.base;
  const size_t base = by_extra ? machine::kExtra : machine::kFramePointer;
  return walker.registers().Knows(base) && walker.registers().values[base] == frame.base;
}

// Returns where the register of frame `end` was saved by those from the first one on; 0 if it was
// not.
uintptr_t RememberedWalk::LastSaved(uintptr_t Frame::* place, size_t end) const {
  while (end > first()) {
    if (const uintptr_t saved_at = frames_[--end].*place) return saved_at;
  }
  return 0;
}

RememberedWalk::Frame RememberedWalk::At(const Walker& walker) {
  const Registers& registers = walker.registers();
  // Both bases, until Note knows which of them the step needs.
  return {.sp = walker.sp(),
          .pc = walker.pc(),
          .base = registers.values[machine::kFramePointer],
          .frame_pointer_at = 0,
          .extra_at = registers.values[machine::kExtra],
          .kind = CompactRule::Kind::kNone,
          .asks = kKind};
}

// Adds a frame of this walk, unless no remembered frame can follow it. A register from which no
// frame's address was computed may be the program's last pointer to a block; the leak checker must
// not find it here.
void RememberedWalk::Add(Frame frame) {
  if (new_count_ == kMost) notes_ = false;
  if (!notes_) return;
  const bool has_base = frame.kind == CompactRule::Kind::kFromFramePointer ||
                        frame.kind == CompactRule::Kind::kFromExtra;
  if (!has_base) frame.base = 0;
  if (frame.kind == CompactRule::Kind::kNone) frame.extra_at = 0;
  new_frames_[new_count_++] = frame;
}

// Adds the frame that the walker has left. Frames after a step that was not made by a rule of the
// tables alone are not remembered.
void RememberedWalk::Note(Frame frame, Walker& walker, StepResult result) {
  const CompactRule rule = walker.last_rule();
  frame.kind = rule.kind();
  const uint32_t object = walker.objects().bit_of_last();
  frame.asks = object | (frame.kind == CompactRule::Kind::kFromStackPointer ? 0 : kKind);
  const uintptr_t extra = frame.extra_at;
  frame.extra_at = 0;
  switch (frame.kind) {
    case CompactRule::Kind::kFromStackPointer:
    case CompactRule::Kind::kFromExtra:
    case CompactRule::Kind::kFromFramePointer:
      if (frame.kind == CompactRule::Kind::kFromExtra) frame.base = extra;
      if (rule.frame_pointer_slot() != 0) {
        frame.frame_pointer_at = walker.sp() - rule.frame_pointer_slot();
        notes_ &= frame.frame_pointer_at >= frame.sp;
      }
      if (rule.extra_slot() != 0) {
        frame.extra_at = walker.sp() - rule.extra_slot();
        notes_ &= frame.extra_at >= frame.sp;
      }
      notes_ &= result == StepResult::kCaller && object != 0 &&
                (!machine::kExtraIsReturnAddress || frame.extra_at != 0);
      break;
    case CompactRule::Kind::kFull:
      notes_ &= result == StepResult::kCaller;
      break;
    case CompactRule::Kind::kOutermost:
      notes_ &= object != 0;
      break;
    default:
      notes_ = false;
  }
  Add(frame);
}

// Moves the walker to a frame that was met, from which it has to step. The frames before it belong
// to this walk now.
void RememberedWalk::GoOnFrom(Walker& walker, size_t at) {
  if (at != first()) {
    walker.MoveUp(frames_[at].sp, frames_[at].pc, LastSaved(&Frame::frame_pointer_at, at),
                  LastSaved(&Frame::extra_at, at));
  }
  for (; first() < at; --kept_) Add(frames_[first()]);
  --kept_;
}

// Makes this walk the one that is remembered. `joined` tells that it ended at a remembered frame,
// and that the ones from first() on follow the new ones.
void RememberedWalk::Keep(bool joined) {
  if (!joined) kept_ = 0;
  if (new_count_ == 0) return;
  if (TCMALLOC_UNLIKELY(new_count_ > first())) {
    // Makes room for more than one walk.
    const size_t kept = std::min(kept_, (kMost - new_count_) / 2);
    std::copy_backward(frames_ + first(), frames_ + first() + kept, frames_ + kMost);
    kept_ = kept;
  }
  kept_ += new_count_;
  std::copy_n(new_frames_, new_count_, frames_ + first());
}

// Adds what the step from frame `at` to the next one depends on. Returns false if it is not known.
bool RememberedWalk::TellStep(size_t at, WalkReads* reads) const {
  const Frame& frame = frames_[at];
  const Frame& caller = frames_[at + 1];
  if (reads->count + 2 > WalkReads::kMost) return false;
  if (frame.kind == CompactRule::Kind::kFromFramePointer ||
      frame.kind == CompactRule::Kind::kFromExtra) {
    const bool by_extra = frame.kind == CompactRule::Kind::kFromExtra;
    const uintptr_t at_word = LastSaved(by_extra ? &Frame::extra_at : &Frame::frame_pointer_at, at);
    if (by_extra && at_word == 0) return false;
    reads->reads[reads->count++] = {.at = at_word, .value = frame.base};
  } else if (frame.kind != CompactRule::Kind::kFromStackPointer) {
    return false;
  }
  reads->reads[reads->count++] = {.at = ReturnAddressAt(frame, caller), .value = caller.pc};
  return true;
}

void RememberedWalk::TellReads(const StackFrames& frames, int count, WalkReads* reads) const {
  reads->count = 0;
  const size_t last = first() + static_cast<size_t>(count);
  if (!notes_ || count == 0 || last >= kMost) return;
  const bool is_whole =
      count == frames.limit || frames_[last].kind == CompactRule::Kind::kOutermost;
  for (size_t at = first(); is_whole && at < last; ++at) {
    const bool follows =
        frames_[at + 1].pc == reinterpret_cast<uintptr_t>(frames.addresses[at - first()]);
    if (follows && TellStep(at, reads)) continue;
    reads->count = 0;
    return;
  }
}

void RememberedWalk::CheckInvariants() const {
  for (size_t i = first(); i + 1 < kMost; ++i) {
    TCMALLOC_CHECK_LE(frames_[i].sp, frames_[i + 1].sp);
  }
}

}  // namespace tcmalloc
