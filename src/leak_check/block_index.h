// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds the block that an address lies in.

#ifndef TCMALLOC_LEAK_CHECK_BLOCK_INDEX_H_
#define TCMALLOC_LEAK_CHECK_BLOCK_INDEX_H_

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// A block that the program has.
struct Block {
  uintptr_t address = 0;
  uint64_t bytes = 0;       // that the program asked for
  uint64_t sequence = 0;    // of its allocation, among all allocations
  uint32_t stack = 0;       // the name of the stack of its allocation; 0 if it is not known
  bool ignored = false;     // the program said that it is not lost, nor what it leads to
  bool is_mapping = false;  // memory that the program mapped, which is no block but leads to some
};

// Blocks in the order of their addresses, with a table of pages to find them by. For one thread.
// Takes memory from the system alone.
class BlockIndex {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  BlockIndex() = default;
  BlockIndex(const BlockIndex&) = delete;
  BlockIndex& operator=(const BlockIndex&) = delete;
  ~BlockIndex();

  // Sorts `count` blocks in place, if they are not sorted, and indexes them; they outlive the
  // index. Blocks do not overlap. Called once. Returns false if no memory can be had.
  [[nodiscard]] bool Build(Block* blocks, size_t count);

  // Returns the index of the block in which `address` lies, or kNone. A block of no bytes counts as
  // one byte.
  uint32_t Find(uintptr_t address) const {
    if (!MayContain(address)) return kNone;
    const uint32_t first = FirstInPiece(address);
    return first == 0 ? kNone : FindFrom(first - 1, address);
  }

  // The addresses of blocks lie within these, but not all of these lie in a block.
  struct Bounds {
    uintptr_t low = 0;
    uintptr_t span = 0;  // bytes from the first block to the end of the last
    // The largest part of it without a block, mostly between the heap and the program's mappings.
    // Many pairs of small numbers look like addresses there, and would touch all of the roots.
    uintptr_t gap = 0;
    uintptr_t gap_bytes = 0;

    bool Contain(uintptr_t address) const {
      return address - low < span && address - gap >= gap_bytes;
    }
  };
  const Bounds& bounds() const { return bounds_; }

  // The steps of Find, for whoever searches for many addresses at a time and lets memory come
  // meanwhile.
  bool MayContain(uintptr_t address) const { return bounds_.Contain(address); }
  // Requires MayContain.
  void PrefetchPiece(uintptr_t address) const {
    const Leaf* leaf = roots_[RootOf(address)];
    if (leaf != nullptr) __builtin_prefetch(&leaf->first[LeafOf(address)]);
  }
  // Returns one more than the index of the first block with a byte in the piece of memory that has
  // `address`; 0 if there is none.
  uint32_t FirstInPiece(uintptr_t address) const {
    const Leaf* leaf = roots_[RootOf(address)];
    return leaf != nullptr ? leaf->first[LeafOf(address)] : 0;
  }
  void PrefetchExtent(uint32_t i) const { __builtin_prefetch(&extents_[i]); }
  // Returns the block in which `address` lies, from this one on.
  uint32_t FindFrom(uint32_t first, uintptr_t address) const;
  uintptr_t begin_of(uint32_t i) const { return extents_[i].begin; }

  size_t size() const { return count_; }
  const Block& operator[](uint32_t i) const { return blocks_[i]; }

 private:
  static constexpr int kPieceBits = 13;
  static constexpr int kLeafBits = 17;
  static constexpr size_t kRoots = size_t{1} << (kAddressBits - kPieceBits - kLeafBits);

  // For each piece of memory, one more than the index of the first block that has a byte in it; 0
  // if there is none.
  struct Leaf {
    Leaf* next;  // any other one
    uint32_t first[size_t{1} << kLeafBits];
  };

  // Where a block lies; apart from the rest of what is known of it, so that a search touches
  // little.
  struct Extent {
    uintptr_t begin;
    uintptr_t end;
  };

  static size_t RootOf(uintptr_t address) { return address >> (kPieceBits + kLeafBits); }
  static size_t LeafOf(uintptr_t address) {
    return address >> kPieceBits & ((size_t{1} << kLeafBits) - 1);
  }

  Leaf* EnsureLeaf(uintptr_t address);
  bool Enter(uint32_t i);

  const Block* blocks_ = nullptr;
  size_t count_ = 0;
  uintptr_t entered_ = 0;  // the end of the pieces that have their first block
  Bounds bounds_;
  Scratch<Extent> extents_;
  Scratch<Leaf*> roots_;
  // The first of all leaves. The roots are many, and most of their memory is never touched.
  Leaf* leaves_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_BLOCK_INDEX_H_
