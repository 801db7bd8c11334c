// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/quick_walk.h"

#include <algorithm>
#include <bit>

#include "base/attributes.h"
#include "unwind/cfi.h"
#include "unwind/loaded_objects.h"
#include "unwind/machine.h"
#include "unwind/object_list.h"
#include "unwind/readable_memory.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

using Kind = CompactRule::Kind;

// The bytes before a return address that tell calls apart: the call itself and what comes before.
constexpr uintptr_t kCallBytes = 16;

constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;

TCMALLOC_ALWAYS_INLINE uint64_t CodeBefore(uintptr_t pc) {
  return std::rotl(machine::LoadWord(pc - 16), 31) ^ machine::LoadWord(pc - 8);
}

// Returns true for the rules by which a walk can go on with the frame pointer alone.
bool Serves(CompactRule rule) {
  if (rule.kind() == Kind::kOutermost) return true;
  if (machine::kExtraIsReturnAddress && rule.extra_slot() == 0) return false;
  return rule.kind() == Kind::kFromStackPointer || rule.kind() == Kind::kFromFramePointer;
}

// The functions of the frames that were stored. Most stacks have none twice, which a bit for each
// hash tells.
class Functions {
 public:
  // Returns false if the function is there already.
  TCMALLOC_ALWAYS_INLINE bool Add(uintptr_t function) {
    const uint64_t bit = uint64_t{1} << (function * kGolden >> 58);
    const bool maybe = (hashes_ & bit) != 0;
    uintptr_t* const end = functions_ + count_;
    if (maybe && std::find(functions_, end, function) != end) return false;
    hashes_ |= bit;
    functions_[count_++] = function;
    return true;
  }

 private:
  uint64_t hashes_ = 0;
  uint32_t count_ = 0;
  uintptr_t functions_[QuickWalk::kMostFrames];
};

// Where the words are that a walk reads.
class Reads {
 public:
  explicit Reads(WalkReads* reads) : reads_(reads) {
    if (reads != nullptr) reads->count = 0;
  }

  // Adds the words that one step depends on: the frame pointer, unless it is null, and the return
  // address.
  TCMALLOC_ALWAYS_INLINE void Add(const WalkReads::Read* frame_pointer, WalkReads::Read pc) {
    if (TCMALLOC_LIKELY(reads_ == nullptr)) return;
    if (reads_->count + 2 > WalkReads::kMost) {
      reads_->count = 0;
      reads_ = nullptr;
      return;
    }
    if (frame_pointer != nullptr) reads_->reads[reads_->count++] = *frame_pointer;
    reads_->reads[reads_->count++] = pc;
  }
  // Tells that the walk has failed.
  void Forget() {
    if (reads_ != nullptr) reads_->count = 0;
  }

 private:
  WalkReads* reads_;
};

}  // namespace

// Reads the rule from the tables. Returns false if the function has none that serves here, or if
// its code may not be read.
TCMALLOC_NOINLINE bool QuickWalk::Learn(uintptr_t pc, Entry (&set)[kWays]) {
  LoadedObject object;
  if (!FindLoadedObject(pc - 1, /*runs=*/true, &object)) return false;
  FrameRules rules;
  if (!object.Contains(pc - kCallBytes) || !ReadFrameRules(object, pc - 1, &rules)) return false;
  const CompactRule rule = CompactRule::From(rules);
  uint64_t code[2];
  static_assert(sizeof(code) == kCallBytes);
  if (!Serves(rule) || !CopyIfReadable(pc - kCallBytes, code, sizeof(code))) return false;
  std::copy_backward(set, set + kWays - 1, set + kWays);
  set[0] = {.pc = pc, .code = CodeBefore(pc), .rule = rule, .function = rules.function};
  return true;
}

// Returns the entry of a return address, which it learns first if need be; null if it cannot.
TCMALLOC_ALWAYS_INLINE const QuickWalk::Entry* QuickWalk::EntryOf(uintptr_t pc) {
  Entry(&set)[kWays] = entries_[pc * kGolden >> (64 - kLog2Sets)];
  for (const Entry& entry : set) {
    if (entry.pc == pc && TCMALLOC_LIKELY(entry.code == CodeBefore(pc))) return &entry;
  }
  return Learn(pc, set) ? &set[0] : nullptr;
}

uint32_t QuickWalk::Walk(Frame frame, void** addresses, uint32_t limit, WalkReads* reads) {
  Reads noted(reads);
  // A list of objects may be out of date.
  if (TCMALLOC_UNLIKELY(unwind_method() != UnwindMethod::kTables || UsesObjectList())) return 0;
  StackMemory memory;
  memory.MoveTo(frame.sp, /*guessed=*/false);
  Functions functions;
  WalkReads::Read frame_pointer = {.at = 0, .value = frame.frame_pointer};
  void** next = addresses;
  for (uint32_t left = limit; left > 0; --left) {
    const Entry* entry = EntryOf(frame.pc);
    if (TCMALLOC_UNLIKELY(entry == nullptr)) return noted.Forget(), 0;
    if (functions.Add(entry->function)) *next++ = reinterpret_cast<void*>(frame.pc);
    const CompactRule rule = entry->rule;
    if (TCMALLOC_UNLIKELY(rule.kind() == Kind::kOutermost)) break;
    const bool by_frame_pointer = rule.kind() == Kind::kFromFramePointer;
    const uintptr_t base = by_frame_pointer ? frame_pointer.value : frame.sp;
    const uintptr_t caller_sp = base + rule.frame_offset();
    const uintptr_t pc_at =
        caller_sp - (machine::kExtraIsReturnAddress ? rule.extra_slot() : sizeof(uintptr_t));
    uintptr_t pc = 0;
    if (TCMALLOC_UNLIKELY(caller_sp <= frame.sp || !memory.Read(pc_at, &pc))) {
      return noted.Forget(), 0;
    }
    frame.pc = machine::StripAuthentication(pc);
    if (TCMALLOC_UNLIKELY(frame.pc == 0)) break;
    noted.Add(by_frame_pointer ? &frame_pointer : nullptr, {.at = pc_at, .value = frame.pc});
    if (rule.frame_pointer_slot() != 0) {
      frame_pointer.at = caller_sp - rule.frame_pointer_slot();
      if (!memory.Read(frame_pointer.at, &frame_pointer.value)) return noted.Forget(), 0;
    }
    frame.sp = caller_sp;
  }
  return static_cast<uint32_t>(next - addresses);
}

}  // namespace tcmalloc
