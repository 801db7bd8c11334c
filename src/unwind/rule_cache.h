// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Remembers how to leave functions, by the address of the code.

#ifndef TCMALLOC_UNWIND_RULE_CACHE_H_
#define TCMALLOC_UNWIND_RULE_CACHE_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/random.h"
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
// threads, or for code that is not there anymore, the reader finds that they do not fit.
class RuleCache {
 public:
  constexpr RuleCache() = default;

  TCMALLOC_ALWAYS_INLINE CompactRule Find(uintptr_t address, uint64_t identity) const {
    const uint64_t hash = HashOf(address);
    const uint64_t key = hash ^ identity;
    for (const Entry& entry : lines_[hash % kLines].entries) {
      const uint64_t rule = entry.rule.load(std::memory_order_relaxed);
      if (TCMALLOC_LIKELY((entry.check.load(std::memory_order_relaxed) ^ rule) == key)) {
        return CompactRule(rule);
      }
    }
    return {};
  }

  void Add(uintptr_t address, uint64_t identity, CompactRule rule) {
    const uint64_t hash = HashOf(address);
    Line& line = lines_[hash % kLines];
    // Makes room by chance once the line is full.
    size_t place = hash / kLines % kWays;
    for (size_t i = 0; i < kWays; ++i) {
      if (line.entries[i].rule.load(std::memory_order_relaxed) == 0) {
        place = i;
        break;
      }
    }
    Entry& entry = line.entries[place];
    entry.rule.store(rule.word(), std::memory_order_relaxed);
    entry.check.store(hash ^ identity ^ rule.word(), std::memory_order_relaxed);
  }

 private:
  static constexpr size_t kWays = 4;
  static constexpr size_t kLines = 4096;

  // One to one, so that two addresses never have the same key within an object.
  static constexpr uint64_t HashOf(uintptr_t address) { return NextRandom(address); }

  struct Entry {
    std::atomic<uint64_t> check{0};
    std::atomic<uint64_t> rule{0};
  };
  struct alignas(64) Line {
    Entry entries[kWays];
  };

  Line lines_[kLines];
};

extern constinit RuleCache rule_cache;

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_RULE_CACHE_H_
