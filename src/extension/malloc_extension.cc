// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The default methods of the interface, for registered extensions that implement few of them.

#include <gperftools/malloc_extension.h>

#include <algorithm>
#include <atomic>
#include <string_view>

#include "extension/heap_extension.h"
#include "extension/string_append.h"
#include "system/weak_cxx_symbols.h"

namespace {

// Null stands for the heap's extension.
constinit std::atomic<MallocExtension*> registered{nullptr};

// pprof prints lines that begin with %warn.
constexpr std::string_view kNoSamples =
    "%warn There are no samples in this profile of the heap:\n"
    "%warn the allocator library in use takes none.\n";
constexpr std::string_view kNoStacks =
    "%warn There are no stacks in this profile of heap growth:\n"
    "%warn the allocator library in use records none.\n";

}  // namespace

SysAllocator::~SysAllocator() = default;

MallocExtension::~MallocExtension() = default;

void MallocExtension::Initialize() {}

MallocExtension* MallocExtension::instance() {
  // Acquire pairs with the release in Register and publishes the object.
  MallocExtension* extension = registered.load(std::memory_order_acquire);
  return extension != nullptr ? extension : tcmalloc::ExtensionOfHeap();
}

void MallocExtension::Register(MallocExtension* implementation) {
  // Release pairs with the acquire in MallocExtension::instance.
  registered.store(implementation, std::memory_order_release);
}

bool MallocExtension::VerifyAllMemory() { return true; }
bool MallocExtension::VerifyNewMemory(const void*) { return true; }
bool MallocExtension::VerifyArrayNewMemory(const void*) { return true; }
bool MallocExtension::VerifyMallocMemory(const void*) { return true; }

bool MallocExtension::MallocMemoryStats(int* blocks, size_t* total,
                                        int histogram[kMallocHistogramSize]) {
  *blocks = 0;
  *total = 0;
  std::fill_n(histogram, kMallocHistogramSize, 0);
  return true;
}

void MallocExtension::GetStats(char* buffer, int buffer_length) {
  if (buffer_length > 0) *buffer = '\0';
}

void MallocExtension::GetHeapSample(MallocExtensionWriter* writer) {
  tcmalloc::Append(writer, kNoSamples);
}
void MallocExtension::GetHeapGrowthStacks(MallocExtensionWriter* writer) {
  tcmalloc::Append(writer, kNoStacks);
}

void MallocExtension::Ranges(void*, RangeFunction) {}

bool MallocExtension::GetNumericProperty(const char*, size_t*) { return false; }
bool MallocExtension::SetNumericProperty(const char*, size_t) { return false; }

void MallocExtension::MarkThreadIdle() {}
void MallocExtension::MarkThreadBusy() {}
void MallocExtension::MarkThreadTemporarilyIdle() {}

SysAllocator* MallocExtension::GetSystemAllocator() { return nullptr; }
void MallocExtension::SetSystemAllocator(SysAllocator*) {}

void MallocExtension::ReleaseToSystem(size_t) {}
void MallocExtension::ReleaseFreeMemory() {}
void MallocExtension::SetMemoryReleaseRate(double) {}
double MallocExtension::GetMemoryReleaseRate() { return -1; }

size_t MallocExtension::GetEstimatedAllocatedSize(size_t size) { return size; }
size_t MallocExtension::GetAllocatedSize(const void*) { return 0; }
MallocExtension::Ownership MallocExtension::GetOwnership(const void*) { return kUnknownOwnership; }

void MallocExtension::GetFreeListSizes(std::vector<FreeListInfo>* v) { v->clear(); }

void** MallocExtension::ReadStackTraces(int* sample_period) {
  *sample_period = 0;
  return nullptr;
}
void** MallocExtension::ReadHeapGrowthStackTraces() { return nullptr; }

size_t MallocExtension::GetThreadCacheSize() { return 0; }
