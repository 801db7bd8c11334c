// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/block_index.h"

#include <sys/mman.h>

#include <algorithm>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

uintptr_t EndOf(const Block& block) { return block.address + std::max<uint64_t>(block.bytes, 1); }

}  // namespace

BlockIndex::~BlockIndex() {
  while (leaves_ != nullptr) {
    Leaf* leaf = leaves_;
    leaves_ = leaf->next;
    system_calls.munmap(leaf, sizeof(Leaf));
  }
}

bool BlockIndex::Build(Block* blocks, size_t count) {
  const auto before = [](const Block& a, const Block& b) { return a.address < b.address; };
  if (!std::is_sorted(blocks, blocks + count, before)) std::sort(blocks, blocks + count, before);
  blocks_ = blocks;
  count_ = count;
  roots_ = Scratch<Leaf*>(kRoots);
  extents_ = Scratch<Extent>(count + 1);
  if (roots_.data() == nullptr || extents_.data() == nullptr) return false;
  uintptr_t end = 0;  // of all so far
  for (uint32_t i = 0; i < count; ++i) {
    extents_[i] = {blocks[i].address, EndOf(blocks[i])};
    if (!Enter(i)) return false;
    if (i > 0 && extents_[i].begin > end && extents_[i].begin - end > bounds_.gap_bytes) {
      bounds_.gap = end;
      bounds_.gap_bytes = extents_[i].begin - end;
    }
    end = std::max(end, extents_[i].end);
  }
  extents_[count] = {UINTPTR_MAX, UINTPTR_MAX};
  if (count == 0) return true;
  bounds_.low = blocks[0].address;
  bounds_.span = EndOf(blocks[count - 1]) - bounds_.low;
  return true;
}

BlockIndex::Leaf* BlockIndex::EnsureLeaf(uintptr_t address) {
  Leaf*& leaf = roots_[RootOf(address)];
  if (leaf != nullptr) return leaf;
  void* memory = system_calls.mmap(nullptr, sizeof(Leaf), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return nullptr;
  leaf = static_cast<Leaf*>(memory);
  leaf->next = leaves_;
  leaves_ = leaf;
  return leaf;
}

bool BlockIndex::Enter(uint32_t i) {
  constexpr uintptr_t kPiece = uintptr_t{1} << kPieceBits;
  if (blocks_[i].address >> kAddressBits != 0) return true;
  const uintptr_t last = EndOf(blocks_[i]) - 1;
  uintptr_t at = std::max(blocks_[i].address / kPiece * kPiece, entered_);
  for (; at <= last; at += kPiece) {
    Leaf* leaf = EnsureLeaf(at);
    if (leaf == nullptr) return false;
    leaf->first[LeafOf(at)] = i + 1;
  }
  entered_ = at;
  return true;
}

uint32_t BlockIndex::FindFrom(uint32_t first, uintptr_t address) const {
  const Extent* extents = extents_.data();
  if (extents[first].begin > address) return kNone;
  // Doubles the distance until it is too far, and then searches between the last two.
  uint32_t low = first;
  uint32_t step = 1;
  while (low + step < count_ && extents[low + step].begin <= address) {
    low += step;
    step *= 2;
  }
  auto high = static_cast<uint32_t>(std::min<size_t>(low + step, count_));
  while (high - low > 1) {
    const uint32_t middle = low + (high - low) / 2;
    (extents[middle].begin <= address ? low : high) = middle;
  }
  return address < extents[low].end ? low : kNone;
}

}  // namespace tcmalloc
