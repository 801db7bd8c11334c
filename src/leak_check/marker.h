// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds out which blocks can be reached.

#ifndef TCMALLOC_LEAK_CHECK_MARKER_H_
#define TCMALLOC_LEAK_CHECK_MARKER_H_

#include <cstddef>
#include <cstdint>

#include "leak_check/block_index.h"
#include "leak_check/memory_map.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

struct PointerRules {
  // A word is looked at if its address is a multiple of this.
  size_t source_alignment = sizeof(void*);
  // A word points at a block if it is the address of one of the first bytes, at most this far from
  // the beginning. 0 allows the beginning alone. Of mappings all bytes count.
  uint64_t most_offset = UINT64_MAX;
};

// Goes through memory and takes every word for a pointer that has the address of a block. For one
// thread.
class Marker {
 public:
  enum class State : uint8_t {
    kLost,           // not reached; of what is lost, a block to which no other leads
    kSeen,           // while SortLost runs, one to which others lead
    kLostWithOther,  // reached from a lost block
    kReached,
  };

  Marker(const BlockIndex& blocks, const MemoryMap& memory, const PointerRules& rules);

  // Returns false if there was no memory for the work. Nothing may be called then.
  bool ok() const { return states_.data() != nullptr && work_.data() != nullptr; }

  // Mark what is reached from the words of a range, or from a block, which is reached as well.
  // Memory that cannot be read has no words.
  void MarkFrom(const Range& range);
  void MarkBlock(uint32_t block);
  // Marks the block that an address lies in, if there is one.
  void MarkAddress(uintptr_t address);

  // Tells among the blocks that were not reached those that other ones of them lead to. Of blocks
  // that lead to each other one is left as lost. Mappings are gone through where a block leads to
  // them. Called once, at the end.
  void SortLost();

  State state(uint32_t block) const { return states_[block]; }

 private:
  void Scan(const Range& range, State state);
  void ScanWords(const Range& range, State state);
  // Searches for the blocks of `count` words together, because each search waits for memory.
  void PushTargets(const uintptr_t* words, size_t count, State state);
  void Push(uint32_t block, State state);
  bool MayLead(uint32_t block) const {
    return states_[block] == State::kLost && !blocks_[block].is_mapping;
  }
  void FollowFrom(uint32_t leader, State state);
  void Drain(State state);
  bool IsNear(uintptr_t word, uint32_t block) const {
    return word - blocks_.begin_of(block) <= rules_.most_offset || blocks_[block].is_mapping;
  }

  const BlockIndex& blocks_;
  const MemoryMap& memory_;
  PointerRules rules_;
  Scratch<State> states_;
  Scratch<uint32_t> work_;  // reached, and not yet gone through
  size_t waiting_ = 0;
  uint32_t leader_ = BlockIndex::kNone;  // where SortLost began
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_MARKER_H_
