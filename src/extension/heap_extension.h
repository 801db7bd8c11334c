// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The MallocExtension that answers from the heap.

#ifndef TCMALLOC_EXTENSION_HEAP_EXTENSION_H_
#define TCMALLOC_EXTENSION_HEAP_EXTENSION_H_

#include <gperftools/malloc_extension.h>

#include <cstddef>
#include <vector>

namespace tcmalloc {

// Has no state.
class HeapExtension : public MallocExtension {
 public:
  constexpr HeapExtension() = default;

  void GetStats(char* buffer, int buffer_length) override;
  void GetHeapGrowthStacks(MallocExtensionWriter* writer) override;
  void** ReadHeapGrowthStackTraces() override;
  void GetHeapSample(MallocExtensionWriter* writer) override;
  void** ReadStackTraces(int* sample_period) override;
  void Ranges(void* arg, RangeFunction func) override;
  bool GetNumericProperty(const char* name, size_t* value) override;
  bool SetNumericProperty(const char* name, size_t value) override;
  void MarkThreadIdle() override;
  void MarkThreadTemporarilyIdle() override;
  SysAllocator* GetSystemAllocator() override;
  void SetSystemAllocator(SysAllocator* a) override;
  void ReleaseToSystem(size_t num_bytes) override;
  void ReleaseFreeMemory() override;
  void SetMemoryReleaseRate(double rate) override;
  double GetMemoryReleaseRate() override;
  size_t GetEstimatedAllocatedSize(size_t size) override;
  size_t GetAllocatedSize(const void* p) override;
  Ownership GetOwnership(const void* p) override;
  void GetFreeListSizes(std::vector<FreeListInfo>* v) override;
  size_t GetThreadCacheSize() override;
};

// Usable before the first constructor and after the last destructor. Never null. Chosen by link:
// extension/plain has a HeapExtension, debug one that knows of checked blocks.
MallocExtension* ExtensionOfHeap();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_HEAP_EXTENSION_H_
