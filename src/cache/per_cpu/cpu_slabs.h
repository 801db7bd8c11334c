// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The slabs of all CPUs, or of all concurrency ids.

#ifndef TCMALLOC_CACHE_PER_CPU_CPU_SLABS_H_
#define TCMALLOC_CACHE_PER_CPU_CPU_SLABS_H_

#include <cstddef>
#include <cstdint>

#include "cache/per_cpu/cpu_slab.h"
#include "cache/per_cpu/slab_layout.h"
#include "system/rseq.h"

namespace tcmalloc {

// Slab i begins at memory() + i * kSlabBytes. Address space for all of them is reserved at once; a
// slab's pages become resident as they are used.
//
// Thread safe once every caller knows that Reserve has returned true. Constant-initialised and
// trivially destructible.
class CpuSlabs {
 public:
  constexpr CpuSlabs() = default;
  CpuSlabs(const CpuSlabs&) = delete;
  CpuSlabs& operator=(const CpuSlabs&) = delete;

  // Makes `count` unused slabs for ids of the given kind, which are all below `count`. Returns
  // false if `count` exceeds kMaxSlabs, if no memory can be had, or if the slabs would take too
  // large a part of a limited address space. May change errno.
  [[nodiscard]] bool Reserve(int count, CpuIds ids, SectionFence fence);

  int count() const { return count_; }
  char* memory() const { return memory_; }
  CpuSlab& slab(int id) { return slabs_[id]; }
  const CpuSlab& slab(int id) const { return slabs_[id]; }

  // Sums and disjunctions over all slabs. Estimates while other threads run.
  size_t CountObjects(uint8_t c) const;
  bool Holds(const void* object, uint8_t c) const;

 private:
  CpuSlab* slabs_ = nullptr;
  char* memory_ = nullptr;
  int count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_PER_CPU_CPU_SLABS_H_
