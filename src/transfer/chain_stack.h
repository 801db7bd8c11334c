// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A stack of chains, kept outside of the objects so that whole chains move untouched. The slabs of
// CPUs use arrays of objects in place of chains.

#ifndef TCMALLOC_TRANSFER_CHAIN_STACK_H_
#define TCMALLOC_TRANSFER_CHAIN_STACK_H_

#include <cstdint>
#include <cstring>

#include "base/attributes.h"
#include "base/check.h"
#include "base/relaxed.h"
#include "pages/free_link.h"
#include "transfer/chain_arrays.h"
#include "transfer/packed_chain.h"

namespace tcmalloc {

// A stack of chains from which PopOfCpu and DropOldest also remove others than the newest. Grows on
// demand and keeps its array until Clear gives it back. Not thread safe, except that others may
// read size() as an estimate.
class ChainStack {
 public:
  constexpr ChainStack() = default;

  uint32_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // Returns false if there was no memory to grow.
  [[nodiscard]] bool Push(PackedChain chain, ChainArrays& arrays) {
    if (TCMALLOC_UNLIKELY(size_ == capacity()) && !Grow(arrays)) return false;
    slots_[size_] = chain;
    size_ = size_ + 1;
    return true;
  }
  [[nodiscard]] bool Push(Chain chain, ChainArrays& arrays) {
    return Push(PackedChain(chain), arrays);
  }

  // Requires !empty().
  PackedChain PopPacked() {
    size_ = size_ - 1;
    return slots_[size_];
  }
  // Removes the newest of those that were put away on CPU number `cpu`, or the oldest of all if
  // there is none. Requires !empty().
  PackedChain PopOfCpu(uint32_t cpu) {
    uint32_t i = size_;
    while (--i > 0 && !slots_[i].IsOnCpu(cpu)) {
    }
    const PackedChain chain = slots_[i];
    size_ = size_ - 1;
    std::memmove(slots_ + i, slots_ + i + 1, (size_ - i) * sizeof(*slots_));
    return chain;
  }
  // Requires that there are chains alone.
  Chain Pop() { return PopPacked().Unpack(); }
  // Removes the oldest chains, which are at the bottom, from index 0 on. Requires count <= size().
  void DropOldest(uint32_t count) {
    if (count == 0) return;
    size_ = size_ - count;
    std::memmove(slots_, slots_ + count, size_ * sizeof(*slots_));
  }
  PackedChain packed_at(uint32_t i) const { return slots_[i]; }
  Chain at(uint32_t i) const { return slots_[i].Unpack(); }

  // Requires empty().
  void Clear(ChainArrays& arrays) {
    TCMALLOC_DCHECK(empty());
    if (slots_ != nullptr) arrays.Deallocate(slots_, log2_);
    slots_ = nullptr;
    log2_ = 0;
  }

 private:
  static constexpr int kFirstLog2 = 2;

  uint32_t capacity() const { return slots_ == nullptr ? 0 : uint32_t{1} << log2_; }

  TCMALLOC_NOINLINE bool Grow(ChainArrays& arrays) {
    const int log2 = slots_ == nullptr ? kFirstLog2 : log2_ + 1;
    if (log2 > ChainArrays::kMaxLog2) return false;
    PackedChain* slots = arrays.Allocate(log2);
    if (slots == nullptr) return false;
    if (slots_ != nullptr) {
      std::memcpy(slots, slots_, size_ * sizeof(*slots));
      arrays.Deallocate(slots_, log2_);
    }
    slots_ = slots;
    log2_ = log2;
    return true;
  }

  PackedChain* slots_ = nullptr;
  Relaxed<uint32_t> size_ = 0;
  int log2_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_CHAIN_STACK_H_
