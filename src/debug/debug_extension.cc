// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The MallocExtension of the debug libraries: that of the heap, but for what blocks are.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "debug/debug_heap.h"
#include "extension/heap_extension.h"
#include "extension/never_destroyed.h"
#include "system/weak_cxx_symbols.h"

namespace tcmalloc {
namespace {

static_assert(BlockTotals::kBuckets == kMallocHistogramSize);

class DebugExtension final : public HeapExtension {
 public:
  constexpr DebugExtension() = default;

  bool VerifyAllMemory() override {
    debug_heap.VerifyAll("VerifyAllMemory");
    return true;
  }
  bool VerifyNewMemory(const void* p) override {
    debug_heap.Verify(p, Family::kNew, "VerifyNewMemory");
    return true;
  }
  bool VerifyArrayNewMemory(const void* p) override {
    debug_heap.Verify(p, Family::kNewArray, "VerifyArrayNewMemory");
    return true;
  }
  bool VerifyMallocMemory(const void* p) override {
    debug_heap.Verify(p, Family::kMalloc, "VerifyMallocMemory");
    return true;
  }

  bool MallocMemoryStats(int* blocks, size_t* total, int histogram[kMallocHistogramSize]) override {
    const BlockTotals totals = debug_heap.Count();
    *blocks = static_cast<int>(totals.blocks);
    *total = totals.bytes;
    for (size_t i = 0; i < BlockTotals::kBuckets; ++i) {
      histogram[i] = static_cast<int>(totals.histogram[i]);
    }
    return true;
  }

  bool GetNumericProperty(const char* name, size_t* value) override {
    if (!HeapExtension::GetNumericProperty(name, value)) return false;
    if (std::strcmp(name, "generic.current_allocated_bytes") == 0) {
      *value -= std::min(*value, debug_heap.queued_bytes());
    }
    return true;
  }

  size_t GetEstimatedAllocatedSize(size_t size) override { return DebugHeap::SizeFor(size); }
  size_t GetAllocatedSize(const void* p) override {
    return debug_heap.SizeOf(p, "GetAllocatedSize");
  }
  Ownership GetOwnership(const void* p) override { return debug_heap.Owns(p) ? kOwned : kNotOwned; }

  void GetFreeListSizes(std::vector<FreeListInfo>* v) override {
    HeapExtension::GetFreeListSizes(v);
    v->push_back({0, SIZE_MAX, debug_heap.queued_bytes(), "debug.free_queue"});
  }
};

// Constant, because the object has no state.
constexpr NeverDestroyed<DebugExtension> kExtension;

}  // namespace

MallocExtension* ExtensionOfHeap() { return const_cast<DebugExtension*>(&kExtension.value); }

}  // namespace tcmalloc
