// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The MallocExtension of the debug mode: that of the heap, but for what blocks are.

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "allocator/block_functions.h"
#include "debug/debug_heap.h"
#include "debug/debug_mode.h"
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
    debug_heap.Verify(p, BlockFamily::kNew, "VerifyNewMemory");
    return true;
  }
  bool VerifyArrayNewMemory(const void* p) override {
    debug_heap.Verify(p, BlockFamily::kNewArray, "VerifyArrayNewMemory");
    return true;
  }
  bool VerifyMallocMemory(const void* p) override {
    debug_heap.Verify(p, BlockFamily::kMalloc, "VerifyMallocMemory");
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

  void GetFreeListSizes(std::vector<FreeListInfo>* v) override {
    HeapExtension::GetFreeListSizes(v);
    v->push_back({0, SIZE_MAX, debug_heap.queued_bytes(), "debug.free_queue"});
  }
};

// Constant, because the objects have no state.
constexpr NeverDestroyed<DebugExtension> kDebugExtension;
constexpr NeverDestroyed<HeapExtension> kExtension;

}  // namespace

MallocExtension* ExtensionOfHeap() {
  if (FunctionsOfMode() == &kDebugFunctions) {
    return const_cast<DebugExtension*>(&kDebugExtension.value);
  }
  return const_cast<HeapExtension*>(&kExtension.value);
}

}  // namespace tcmalloc
