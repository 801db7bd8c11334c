// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/stack_trace.h"

#include <ucontext.h>

#include <algorithm>
#include <atomic>
#include <cerrno>

#include "base/bits.h"
#include "unwind/libunwind_walker.h"
#include "unwind/own_frames.h"
#include "unwind/remembered_walk.h"
#include "unwind/walker.h"

namespace tcmalloc {
namespace {

constinit std::atomic<UnwindMethod> chosen_method{UnwindMethod::kTables};

// Bounds the steps of a walk, whatever the caller asks for.
constexpr int kMostSteps = 1 << 20;

// Thread-local variables at the end of a stack, and the room that libc keeps for those of libraries
// that are still to be loaded, are within so many bytes.
constexpr size_t kReservedBytes = 3072;
// Shorter runs of zero words are copied.
constexpr size_t kLeastRunBytes = 128;

// The words from one address to another.
struct WordRun {
  uintptr_t begin = 0;
  uintptr_t end = 0;
};

// Returns the longest run of zero words in [begin, end), which is readable.
WordRun FindZeroRun(uintptr_t begin, uintptr_t end) {
  WordRun longest;
  uintptr_t run = begin;
  for (uintptr_t at = begin; at != end; at += sizeof(uintptr_t)) {
    if (machine::LoadWord(at) != 0) {
      run = at + sizeof(uintptr_t);
    } else if (at + sizeof(uintptr_t) - run > longest.end - longest.begin) {
      longest = {run, at + sizeof(uintptr_t)};
    }
  }
  return longest;
}

// Where a walk begins.
struct Start {
  const Registers& registers;
  bool at_call;
};

// Moves by the chosen method.
class ChosenWalker : public Walker {
 public:
  ChosenWalker(const Start& start, Precision precision, KnownObjects& objects)
      : Walker(start.registers, start.at_call, precision, objects),
        by_frame_pointer_(unwind_method() == UnwindMethod::kFramePointers) {}

  StepResult StepPastSkipped() { return by_frame_pointer_ ? StepAlongRecords() : Step(); }

 private:
  // Functions that follow each other and have frame records, before the next ones are taken to have
  // some. Where this library is a part of the program, few of its functions have one.
  static constexpr int kEnoughRecords = 3;

  // Moves by the frame pointer once enough functions have shown that the program keeps it.
  // Functions of this library, and others that were compiled without frame pointers, may have
  // another value in the register, so that the tables lead up to there. No table is asked from
  // there on. Ends the walk where a function without a record led to something else than code.
  StepResult StepAlongRecords() {
    if (records_ < kEnoughRecords) records_ = HasOwnRecord() ? records_ + 1 : 0;
    const StepResult result = records_ < kEnoughRecords ? Step() : StepByFramePointer();
    return result != StepResult::kCaller || MayBeCode() ? result : StepResult::kEnd;
  }
  // A function that was interrupted may have no frame yet.
  bool HasOwnRecord() { return at_call() && !IsOfOwnLibrary(pc() - 1) && HasFrameRecord(); }

  bool by_frame_pointer_;
  int records_ = 0;
};

class CopyWalker : public Walker {
 public:
  CopyWalker(const StackCopy& copy, Precision precision, KnownObjects& objects)
      : Walker(copy.registers, precision, objects, copy.stack) {}

  StepResult StepPastSkipped() { return Step(); }
};

// Stores what is asked for. Returns false if it has to be done again with all registers.
template <typename AnyWalker>
TCMALLOC_ALWAYS_INLINE bool Walk(AnyWalker& walker, const StackFrames& frames, int skip,
                                 int* count) {
  *count = 0;
  StepResult result = StepResult::kCaller;
  for (; skip > 0 && result == StepResult::kCaller; --skip) result = walker.Step();
  while (result == StepResult::kCaller) {
    if (*count == frames.limit) return true;
    const uintptr_t sp = walker.sp();
    frames.addresses[*count] = reinterpret_cast<void*>(walker.pc());
    if (frames.sizes != nullptr) frames.sizes[*count] = 0;
    ++*count;
    if (*count == frames.limit && frames.sizes == nullptr) return true;
    result = walker.StepPastSkipped();
    if (frames.sizes != nullptr && result == StepResult::kCaller && walker.sp() > sp) {
      frames.sizes[*count - 1] = static_cast<int>(std::min<uintptr_t>(walker.sp() - sp, INT32_MAX));
    }
  }
  return result != StepResult::kNeedsRegister;
}

// Not inlined, so that two walks use the same stack, and this one's is not taken by the others.

TCMALLOC_NOINLINE bool WalkWith(Walker::Precision precision, const Start& start,
                                const StackFrames& frames, int skip, int* count) {
  KnownObjects objects;
  ChosenWalker walker(start, precision, objects);
  return Walk(walker, frames, skip, count);
}

// Stores addresses alone. Returns false if it has to be done again with all registers.
TCMALLOC_NOINLINE bool WalkRemembering(RememberedWalk& remembered, const Start& start,
                                       const StackFrames& frames, int skip, int* count) {
  Walker walker(start.registers, start.at_call, Walker::Precision::kFewRegisters,
                remembered.objects());
  walker.UseTableMemory(remembered.tables());
  return remembered.Walk(walker, frames, skip, count) == RememberedWalk::Outcome::kDone;
}

// Walks by frame pointers. The objects of the frames that are skipped are known from walks before.
TCMALLOC_NOINLINE bool WalkWithObjectsOf(RememberedWalk& remembered, const Start& start,
                                         const StackFrames& frames, int skip, int* count) {
  ChosenWalker walker(start, Walker::Precision::kFewRegisters, remembered.objects());
  return Walk(walker, frames, skip, count);
}

bool WalkByTables(const Start& start, const StackFrames& frames, int skip, int* count) {
  constexpr auto kFew = Walker::Precision::kFewRegisters;
  RememberedWalk* remembered = frames.sizes == nullptr ? ClaimRememberedWalk() : nullptr;
  if (remembered == nullptr) return WalkWith(kFew, start, frames, skip, count);
  const bool by_frame_pointers = unwind_method() == UnwindMethod::kFramePointers;
  const bool done = by_frame_pointers ? WalkWithObjectsOf(*remembered, start, frames, skip, count)
                                      : WalkRemembering(*remembered, start, frames, skip, count);
  if (frames.reads != nullptr && done && !by_frame_pointers && skip == 1) {
    remembered->TellReads(frames, *count, frames.reads);
  }
  remembered->Release();
  return done;
}

TCMALLOC_NOINLINE void WalkWithLibunwind(const Start& start, const StackFrames& frames, int skip,
                                         int* count) {
  const int saved_errno = errno;
  LibunwindWalker walker(start.registers, start.at_call);
  Walk(walker, frames, skip, count);
  errno = saved_errno;
}

int Capture(const Start& start, const StackFrames& frames, int skip) {
  if (frames.reads != nullptr) frames.reads->count = 0;
  if (frames.limit <= 0) return 0;
  // A function that makes a call has its return address in the next frame.
  skip = std::clamp(skip, 0, kMostSteps) + (start.at_call ? 1 : 0);
  int count = 0;
  if (TCMALLOC_UNLIKELY(unwind_method() == UnwindMethod::kLibunwind) && HasLibunwind()) {
    WalkWithLibunwind(start, frames, skip, &count);
  } else if (!WalkByTables(start, frames, skip, &count)) {
    WalkWith(Walker::Precision::kAllRegisters, start, frames, skip, &count);
  }
  return count;
}

}  // namespace

void SetUnwindMethod(UnwindMethod method) {
  chosen_method.store(method, std::memory_order_relaxed);
}

UnwindMethod unwind_method() { return chosen_method.load(std::memory_order_relaxed); }

std::optional<UnwindMethod> ParseUnwindMethod(std::string_view text) {
  // gperftools' names. libgcc's way to read tables takes locks; ours serves for it.
  for (const std::string_view name : {"generic", "libgcc", "tables"}) {
    if (text == name) return UnwindMethod::kTables;
  }
  if (text == "libunwind") return UnwindMethod::kLibunwind;
  for (const std::string_view name : {"generic_fp", "generic_fp_unsafe", "frame_pointers"}) {
    if (text == name) return UnwindMethod::kFramePointers;
  }
  return std::nullopt;
}

int CaptureCallers(const Registers& registers, const StackFrames& frames, int skip) {
  return Capture({registers, /*at_call=*/true}, frames, skip);
}

size_t OwnStackBytesFrom(uintptr_t sp) {
  StackMemory memory;
  memory.MoveTo(sp, /*guessed=*/false);
  return memory.BytesFrom(sp);
}

StackExtent OwnStackFrom(uintptr_t sp) {
  const uintptr_t limit = std::min(sp + OwnStackBytesFrom(sp), EndOfFirstFrames(sp));
  const size_t bytes = AlignDown(limit - sp, sizeof(uintptr_t));
  const WordRun zeros = FindZeroRun(sp + bytes - std::min(bytes, kReservedBytes), sp + bytes);
  if (zeros.end - zeros.begin < kLeastRunBytes) return {.bytes = bytes};
  return {.bytes = zeros.begin - sp,
          .zero_bytes = zeros.end - zeros.begin,
          .bytes_after = sp + bytes - zeros.end};
}

int CaptureFromCopy(const StackCopy& copy, const StackFrames& frames, int skip) {
  if (frames.limit <= 0) return 0;
  using Precision = Walker::Precision;
  int count = 0;
  for (const Precision precision : {Precision::kFewRegisters, Precision::kAllRegisters}) {
    KnownObjects objects;
    CopyWalker walker(copy, precision, objects);
    // The function that made the call has its return address in the next frame.
    if (Walk(walker, frames, std::clamp(skip, 0, kMostSteps) + 1, &count)) break;
  }
  return count;
}

int CaptureInterrupted(const void* context, const StackFrames& frames, int skip) {
  Registers registers;
  machine::ReadContext(machine::ContextWords(*static_cast<const ucontext_t*>(context)), &registers);
  return Capture({registers, /*at_call=*/false}, frames, skip);
}

}  // namespace tcmalloc
