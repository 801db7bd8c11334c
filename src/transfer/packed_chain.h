// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chains and arrays of free objects in one word.

#ifndef TCMALLOC_TRANSFER_PACKED_CHAIN_H_
#define TCMALLOC_TRANSFER_PACKED_CHAIN_H_

#include <cstdint>

#include "base/check.h"
#include "pages/free_link.h"

namespace tcmalloc {

// Addresses of `count` free objects of one size class, outside of them.
struct ObjectArray {
  void** objects = nullptr;
  uint32_t count = 0;
};

// A chain or an array of objects in one word, and the CPU on which it was put away. The reference
// to the first object of a chain, or to an array, uses bit 63 and, below kAddressBits, bits 0 to
// 44; the count and the CPU take the bits between. Bit 63, which is set in both, is cleared for an
// array.
class PackedChain {
 public:
  // CPUs with the same number modulo this are not told apart.
  static constexpr uint32_t kCpus = 64;
  static constexpr uint32_t kMaxCount = (1U << 12) - 1;

  constexpr PackedChain() = default;
  explicit PackedChain(Chain chain) : word_(Pack(chain.head, chain.count)) {
    TCMALLOC_DCHECK(!is_array());
  }
  explicit PackedChain(ObjectArray array)
      : word_(Pack(ReferenceTo(array.objects), array.count) & ~kChainBit) {}

  bool is_array() const { return (word_ & kChainBit) == 0; }
  uint32_t count() const { return static_cast<uint32_t>(word_ >> kCountShift) & kMaxCount; }

  // Returns the same chain or array, put away on CPU number `cpu`.
  PackedChain OnCpu(uint32_t cpu) const {
    PackedChain placed = *this;
    placed.word_ = (word_ & ~kCpuBits) | uint64_t{cpu % kCpus} << kCpuShift;
    return placed;
  }
  bool IsOnCpu(uint32_t cpu) const { return (word_ & kCpuBits) >> kCpuShift == cpu % kCpus; }

  // Requires a chain.
  Chain Unpack() const { return {reference(), count()}; }
  // Requires an array.
  ObjectArray UnpackArray() const { return {static_cast<void**>(ObjectAt(reference())), count()}; }

 private:
  static constexpr int kCountShift = 45;
  static constexpr uint64_t kCountBits = uint64_t{kMaxCount} << kCountShift;
  static constexpr int kCpuShift = 57;
  static constexpr uint64_t kCpuBits = uint64_t{kCpus - 1} << kCpuShift;
  static constexpr uint64_t kChainBit = uint64_t{1} << 63;

  static uint64_t Pack(ObjectReference reference, uint32_t count) {
    TCMALLOC_DCHECK_LE(count, kMaxCount);
    return reference | uint64_t{count} << kCountShift;
  }
  ObjectReference reference() const { return word_ & ~(kCountBits | kCpuBits); }

  uint64_t word_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_PACKED_CHAIN_H_
