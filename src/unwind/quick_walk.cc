// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/quick_walk.h"

#include <algorithm>

#include "base/attributes.h"
#include "unwind/cfi.h"
#include "unwind/machine.h"
#include "unwind/object_list.h"
#include "unwind/rule_cache.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

using Kind = CompactRule::Kind;

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
  // `functions` has room for as many as a walk has frames.
  explicit Functions(uintptr_t* functions) : begin_(functions), end_(functions) {}

  // Returns false if the function is there already.
  TCMALLOC_ALWAYS_INLINE bool Add(uintptr_t function) {
    // That of most functions that call themselves.
    if (function == last_) return false;
    constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
    const uint64_t bit = uint64_t{1} << (function * kGolden >> 58);
    if ((hashes_ & bit) != 0 && std::find(begin_, end_, function) != end_) return false;
    hashes_ |= bit;
    last_ = function;
    *end_++ = function;
    return true;
  }

 private:
  uintptr_t* const begin_;
  uintptr_t* end_;
  uint64_t hashes_ = 0;
  uintptr_t last_ = 0;
};

// The words of the thread's own stack from a stack pointer on.
class OwnStack {
 public:
  explicit OwnStack(uintptr_t sp) : low_(sp), bytes_(OwnStackBytesFrom(sp)) {}

  // Returns false if the word is not there.
  TCMALLOC_ALWAYS_INLINE bool Read(uintptr_t address, uintptr_t* word) const {
    if (TCMALLOC_UNLIKELY(address - low_ >= bytes_ || address % sizeof(*word) != 0)) return false;
    *word = machine::LoadWord(address);
    return true;
  }

 private:
  const uintptr_t low_;
  const uintptr_t bytes_;
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

// Forgets what belongs to objects that are not known any more, whose bits others may have.
void QuickWalk::ForgetLostObjects() {
  if (TCMALLOC_LIKELY(!objects_.lost_some)) return;
  objects_.lost_some = false;
  for (Entry(&set)[kWays] : entries_) {
    for (Entry& entry : set) {
      if (entry.object != 0) entry = {};
    }
  }
}

// Reads the rule from the tables. Returns null if the function has none that serves here.
TCMALLOC_NOINLINE const QuickWalk::Entry* QuickWalk::Learn(uintptr_t pc, ObjectsOfWalk& objects) {
  const LoadedObject* object = objects.Find(pc - 1, /*runs=*/true);
  ForgetLostObjects();
  if (object == nullptr) return nullptr;
  const uint32_t bit = object->is_permanent ? 0 : objects.bit_of_last();
  if (bit == 0 && !object->is_permanent) return nullptr;
  FrameRules rules;
  if (!ReadFrameRules(*object, pc - 1, nullptr, &rules)) return nullptr;
  const CompactRule rule = CompactRule::From(rules);
  if (!Serves(rule)) return nullptr;
  Entry(&set)[kWays] = entries_[SetOf(pc)];
  std::copy_backward(set, set + kWays - 1, set + kWays);
  const uintptr_t return_slot =
      machine::kExtraIsReturnAddress ? rule.extra_slot() : sizeof(uintptr_t);
  set[0] = {.pc = pc,
            .function = rules.function,
            .frame_offset = static_cast<uint32_t>(rule.frame_offset()),
            .return_slot = static_cast<uint32_t>(return_slot),
            .pointer_slot = static_cast<uint32_t>(rule.frame_pointer_slot()),
            .object = bit & ((uint32_t{1} << 30) - 1),
            .by_frame_pointer = rule.kind() == Kind::kFromFramePointer,
            .outermost = rule.kind() == Kind::kOutermost};
  return &set[0];
}

// Returns the entry of a return address, which it learns first if need be; null if it cannot.
TCMALLOC_ALWAYS_INLINE const QuickWalk::Entry* QuickWalk::EntryOf(uintptr_t pc,
                                                                  ObjectsOfWalk& objects) {
  for (const Entry& entry : entries_[SetOf(pc)]) {
    if (entry.pc != pc) continue;
    if (TCMALLOC_LIKELY((entry.object & ~objects.valid()) == 0) ||
        objects.Validate(entry.object, pc - 1)) {
      return &entry;
    }
    break;
  }
  return Learn(pc, objects);
}

uint32_t QuickWalk::Walk(Frame frame, void** addresses, uint32_t limit, WalkReads* reads) {
  Reads noted(reads);
  // A list of objects may be out of date.
  if (TCMALLOC_UNLIKELY(unwind_method() != UnwindMethod::kTables || UsesObjectList())) return 0;
  // Another stack may go between two walks.
  const OwnStack memory(frame.sp);
  ObjectsOfWalk objects(objects_);
  uintptr_t stored[kMostFrames];
  Functions functions(stored);
  WalkReads::Read frame_pointer = {.at = 0, .value = frame.frame_pointer};
  void** next = addresses;
  for (uint32_t left = limit; left > 0; --left) {
    const Entry* entry = EntryOf(frame.pc, objects);
    if (TCMALLOC_UNLIKELY(entry == nullptr)) return noted.Forget(), 0;
    if (functions.Add(entry->function)) *next++ = reinterpret_cast<void*>(frame.pc);
    if (TCMALLOC_UNLIKELY(entry->outermost)) break;
    const uintptr_t base = entry->by_frame_pointer ? frame_pointer.value : frame.sp;
    const uintptr_t caller_sp = base + entry->frame_offset;
    const uintptr_t pc_at = caller_sp - entry->return_slot;
    uintptr_t pc = 0;
    if (TCMALLOC_UNLIKELY(caller_sp <= frame.sp || !memory.Read(pc_at, &pc))) {
      return noted.Forget(), 0;
    }
    frame.pc = machine::StripAuthentication(pc);
    if (TCMALLOC_UNLIKELY(frame.pc == 0)) break;
    noted.Add(entry->by_frame_pointer ? &frame_pointer : nullptr, {.at = pc_at, .value = frame.pc});
    if (entry->pointer_slot != 0) {
      frame_pointer.at = caller_sp - entry->pointer_slot;
      if (!memory.Read(frame_pointer.at, &frame_pointer.value)) return noted.Forget(), 0;
    }
    frame.sp = caller_sp;
  }
  return static_cast<uint32_t>(next - addresses);
}

}  // namespace tcmalloc
