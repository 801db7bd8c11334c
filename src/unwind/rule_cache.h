// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Remembers how to leave functions, by the address of the code.

#ifndef TCMALLOC_UNWIND_RULE_CACHE_H_
#define TCMALLOC_UNWIND_RULE_CACHE_H_

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "base/attributes.h"
#include "base/random.h"
#include "base/relaxed.h"
#include "unwind/cfi.h"
#include "unwind/machine.h"

namespace tcmalloc {

// The rules of nearly all frames in one word: the frame address is a register plus a number, and
// the return address, the frame pointer and one more register are where they were or lie below the
// frame address.
class CompactRule {
 public:
  enum class Kind : uint8_t {
    kNone = 0,  // nothing is known
    kFromStackPointer,
    kFromFramePointer,
    kFromExtra,  // from machine::kExtra
    kOutermost,  // the function has no caller
    kFull,       // needs the tables each time
    kNoTable,    // the tables say nothing
  };

  constexpr CompactRule() = default;
  constexpr explicit CompactRule(uint64_t word) : word_(word) {}
  constexpr explicit CompactRule(Kind kind) : word_(static_cast<uint64_t>(kind)) {}

  // Packs `rules`; kFull if they do not fit.
  static CompactRule From(const FrameRules& rules);

  constexpr uint64_t word() const { return word_; }
  constexpr Kind kind() const { return static_cast<Kind>(word_ & kKindMask); }
  constexpr uintptr_t frame_offset() const { return Field(kFrameShift, kFrameBits); }
  // How far below the frame address a register is saved; 0 if it is not.
  constexpr uintptr_t frame_pointer_slot() const { return Field(kPointerShift, kSlotBits); }
  constexpr uintptr_t extra_slot() const { return Field(kExtraShift, kSlotBits); }

 private:
  // Offsets are in words.
  static constexpr unsigned kKindMask = 7;
  static constexpr unsigned kFrameShift = 3;
  static constexpr unsigned kFrameBits = 24;
  static constexpr unsigned kPointerShift = kFrameShift + kFrameBits;
  static constexpr unsigned kSlotBits = 16;
  static constexpr unsigned kExtraShift = kPointerShift + kSlotBits;
  static_assert(kExtraShift + kSlotBits <= 64);

  constexpr uintptr_t Field(unsigned shift, unsigned bits) const {
    return (word_ >> shift & ((uint64_t{1} << bits) - 1)) * sizeof(uintptr_t);
  }
  static bool PackSlot(const RegisterRule& rule, unsigned shift, uint64_t* word);

  uint64_t word_ = 0;
};

// Rules by the address of an instruction and the identity of the object that it is in. A bounded
// table that all threads and signal handlers read and write without a lock. An entry is two words,
// of which the first is the key mixed with the second: of two words that were written by different
// threads, or for code that is no longer there, the reader finds that they do not fit.
//
// Uses its first lines alone until these have been overwritten about once, and then four times as
// many, so that a process with few call sites touches few pages. Rules that are not in the line in
// which the greater number looks for them are added again.
class RuleCache {
 public:
  constexpr RuleCache() = default;

  TCMALLOC_ALWAYS_INLINE CompactRule Find(uintptr_t address, uint64_t identity) const {
    const uint64_t hash = HashOf(address);
    const uint64_t key = hash ^ identity;
    for (const Entry& entry : lines_[hash & line_mask()].entries) {
      const uint64_t rule = entry.rule.load(std::memory_order_relaxed);
      if (TCMALLOC_LIKELY((entry.check.load(std::memory_order_relaxed) ^ rule) == key)) {
        return CompactRule(rule);
      }
    }
    return {};
  }

  void Add(uintptr_t address, uint64_t identity, CompactRule rule) {
    const uint64_t hash = HashOf(address);
    Line& line = lines_[hash & line_mask()];
    const auto empty = std::ranges::find_if(line.entries, [](const Entry& entry) {
      return entry.rule.load(std::memory_order_relaxed) == 0;
    });
    const bool is_full = empty == std::end(line.entries);
    if (is_full) NoteOverwritten();
    // Replaces a random entry where the line is full.
    Entry& entry = is_full ? line.entries[hash / kLines % kWays] : *empty;
    entry.rule.store(rule.word(), std::memory_order_relaxed);
    entry.check.store(hash ^ identity ^ rule.word(), std::memory_order_relaxed);
  }

  size_t lines_used() const { return line_mask() + 1; }

 private:
  static constexpr size_t kWays = 4;
  static constexpr uint32_t kFirstLines = 64;
  static constexpr uint32_t kLines = 4096;

  uint32_t line_mask() const { return (kFirstLines - 1) | more_lines_; }

  // Two threads that call this at a time may count one line together.
  void NoteOverwritten() {
    const uint32_t overwritten = overwritten_ + 1;
    overwritten_ = overwritten;
    const auto lines = static_cast<uint32_t>(lines_used());
    if (overwritten < kWays * lines || lines == kLines) return;
    overwritten_ = 0;
    more_lines_ = 4 * lines - 1;
  }
  static_assert(kLines == kFirstLines * 4 * 4 * 4);

  // Maps addresses to hashes one to one, so that two never have the same key within an object.
  static constexpr uint64_t HashOf(uintptr_t address) { return NextRandom(address); }

  struct Entry {
    std::atomic<uint64_t> check{0};
    std::atomic<uint64_t> rule{0};
  };
  struct alignas(64) Line {
    Entry entries[kWays];
  };

  // Zero at first, as all of the table, so that no byte of it is in the file of the library.
  Relaxed<uint32_t> more_lines_ = 0;  // bits of the mask of those in use
  Relaxed<uint32_t> overwritten_ = 0;
  Line lines_[kLines];
};

extern constinit RuleCache rule_cache;

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_RULE_CACHE_H_
