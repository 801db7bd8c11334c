// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/marker.h"

namespace tcmalloc {
namespace {

constexpr size_t kWordsAtOnce = 32;

// Any word of the program, whatever its type and alignment.
__attribute__((no_sanitize("address", "alignment"))) uintptr_t LoadAnyWord(uintptr_t address) {
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

// Only blocks begin, because a mapping that no lost block leads to is not reported. The first round
// leaves as lost those from which it began. An earlier one of them does not lead to a later one,
// which would have been seen then. So the second round begins with the last, and what is still lost
// when its turn comes has no other that leads to it.
void Marker::SortLost() {
  const auto count = static_cast<uint32_t>(blocks_.size());
  for (uint32_t i = 0; i < count; ++i) {
    if (MayLead(i)) FollowFrom(i, State::kSeen);
  }
  for (uint32_t i = count; i-- > 0;) {
    if (MayLead(i)) FollowFrom(i, State::kLostWithOther);
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
    if (waiting_ > 0) {
      __builtin_prefetch(reinterpret_cast<const void*>(blocks_.begin_of(work_[waiting_ - 1])));
    }
    Scan({block.address, block.address + block.bytes}, state);
  }
}

void Marker::Scan(const Range& range, State state) {
  memory_.ForEachReadable(range, [&](const Range& part) { ScanWords(part, state); });
}

void Marker::ScanWords(const Range& range, State state) {
  uintptr_t found[kWordsAtOnce];
  size_t count = 0;
  // Copies, because a store to the words found might change what they are copies of.
  const BlockIndex::Bounds bounds = blocks_.bounds();
  const size_t step = rules_.source_alignment;
  for (uintptr_t at = (range.begin + step - 1) / step * step; at + sizeof(uintptr_t) <= range.end;
       at += step) {
    const uintptr_t word = LoadAnyWord(at);
    if (!bounds.Contain(word)) continue;
    blocks_.PrefetchPiece(word);
    found[count++] = word;
    if (count < kWordsAtOnce) continue;
    PushTargets(found, count, state);
    count = 0;
  }
  PushTargets(found, count, state);
}

void Marker::PushTargets(const uintptr_t* words, size_t count, State state) {
  uint32_t places[kWordsAtOnce];
  for (size_t i = 0; i < count; ++i) {
    places[i] = blocks_.FirstInPiece(words[i]);
    if (places[i] != 0) blocks_.PrefetchExtent(places[i] - 1);
  }
  for (size_t i = 0; i < count; ++i) {
    if (places[i] == 0) {
      places[i] = BlockIndex::kNone;
      continue;
    }
    places[i] = blocks_.FindFrom(places[i] - 1, words[i]);
    if (places[i] != BlockIndex::kNone) __builtin_prefetch(&states_[places[i]]);
  }
  for (size_t i = 0; i < count; ++i) {
    if (places[i] != BlockIndex::kNone && IsNear(words[i], places[i])) Push(places[i], state);
  }
}

}  // namespace tcmalloc
