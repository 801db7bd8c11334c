// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_cpu/cpu_slabs.h"

#include <new>
#include <type_traits>

#include "size_class/size_classes.h"
#include "system/address_window.h"
#include "system/own_memory.h"

namespace tcmalloc {
namespace {

static_assert(std::is_trivially_destructible_v<CpuSlab>);
static_assert(std::is_trivially_destructible_v<CpuDepot>);

// Most ids are never used, but a limit on address space counts their slabs. A process with little
// address space is better off without slabs.
constexpr size_t kLimitShare = 8;

char* MapSlabs(size_t bytes) {
  if (bytes > AddressSpaceLimit() / kLimitShare) return nullptr;
  // A hugepage would make the slabs of four CPUs resident with the first object in one of them.
  return static_cast<char*>(MapSparse(bytes));
}

}  // namespace

bool CpuSlabs::Reserve(int count, CpuIds ids, SectionFence fence) {
  const auto n = static_cast<size_t>(count);
  if (n > kMaxSlabs) return false;
  char* memory = MapSlabs(n * kSlabBytes);
  if (memory == nullptr) return false;
  void* slabs = MapZeroed(n * sizeof(CpuSlab));
  // Depots of ids that are never used are never touched.
  void* depots = MapSparse(n * sizeof(CpuDepot));
  if (slabs == nullptr || depots == nullptr) {
    UnmapSparse(memory, n * kSlabBytes);
    if (slabs != nullptr) UnmapZeroed(slabs, n * sizeof(CpuSlab));
    if (depots != nullptr) UnmapSparse(depots, n * sizeof(CpuDepot));
    return false;
  }
  slabs_ = static_cast<CpuSlab*>(slabs);
  for (int i = 0; i < count; ++i) {
    // Only the kernel knows which CPU runs the thread with a given concurrency id.
    const int cpu = ids == CpuIds::kCpuId ? i : -1;
    new (slabs_ + i) CpuSlab(memory + static_cast<size_t>(i) * kSlabBytes,
                             static_cast<CpuDepot*>(depots) + i, fence, cpu);
  }
  memory_ = memory;
  count_ = count;
  return true;
}

size_t CpuSlabs::CountObjects(uint8_t c) const {
  size_t count = 0;
  for (int i = 0; i < count_; ++i) {
    if (slab(i).state() == SlabState::kUnused) continue;
    count += slab(i).CountObjects(c) + slab(i).depot().CountObjects(c);
  }
  return count;
}

bool CpuSlabs::Holds(const void* object, uint8_t c) const {
  for (int i = 0; i < count_; ++i) {
    if (slab(i).Holds(object, c)) return true;
  }
  return false;
}

}  // namespace tcmalloc
