// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/marker.h"

namespace tcmalloc {
namespace {

// Any word of the program, whatever its type and alignment.
__attribute__((no_sanitize("address", "alignment"))) uintptr_t LoadWord(uintptr_t address) {
  struct __attribute__((packed, may_alias)) Word {
    uintptr_t value;
  };
  return reinterpret_cast<const Word*>(address)->value;
}

}  // namespace

Marker::Marker(const BlockIndex& blocks, const MemoryMap& memory, const PointerRules& rules)
    : blocks_(blocks),
      memory_(memory),
      rules_(rules),
      states_(blocks.size() + 1),
      work_(blocks.size() + 1) {}

void Marker::MarkFrom(const Range& range) {
  Scan(range, State::kReached);
  Drain(State::kReached);
}

void Marker::MarkBlock(uint32_t block) {
  Push(block, State::kReached);
  Drain(State::kReached);
}

void Marker::MarkAddress(uintptr_t address) {
  const uint32_t block = blocks_.Find(address);
  if (block != BlockIndex::kNone) MarkBlock(block);
}

// The first round leaves as lost those from which it began. An earlier one of them does not lead to
// a later one, which would have been seen then. So the second round begins with the last, and what
// is still lost when its turn comes has no other that leads to it.
void Marker::SortLost() {
  const auto count = static_cast<uint32_t>(blocks_.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (states_[i] == State::kLost) FollowFrom(i, State::kSeen);
  }
  for (uint32_t i = count; i-- > 0;) {
    if (states_[i] == State::kLost) FollowFrom(i, State::kLostWithOther);
  }
}

void Marker::FollowFrom(uint32_t leader, State state) {
  leader_ = leader;
  work_[waiting_++] = leader;
  Drain(state);
  leader_ = BlockIndex::kNone;
}

void Marker::Push(uint32_t block, State state) {
  State& now = states_[block];
  if (now >= state || block == leader_) return;
  now = state;
  work_[waiting_++] = block;
}

void Marker::Drain(State state) {
  while (waiting_ > 0) {
    const Block& block = blocks_[work_[--waiting_]];
    Scan({block.address, block.address + block.bytes}, state);
  }
}

void Marker::Scan(const Range& range, State state) {
  memory_.ForEachReadable(range, [&](const Range& part) { ScanWords(part, state); });
}

void Marker::ScanWords(const Range& range, State state) {
  const size_t step = rules_.source_alignment;
  uintptr_t at = (range.begin + step - 1) / step * step;
  for (; at + sizeof(uintptr_t) <= range.end; at += step) {
    const uint32_t block = FindTarget(LoadWord(at));
    if (block != BlockIndex::kNone) Push(block, state);
  }
  words_ += range.bytes() / step;
}

uint32_t Marker::FindTarget(uintptr_t word) const {
  const uint32_t block = blocks_.Find(word);
  if (block == BlockIndex::kNone) return block;
  const Block& target = blocks_[block];
  const bool near = word - target.address <= rules_.most_offset || target.is_mapping;
  return near ? block : BlockIndex::kNone;
}

}  // namespace tcmalloc
