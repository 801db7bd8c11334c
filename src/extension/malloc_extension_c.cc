// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// MallocExtension for C.

#include <gperftools/malloc_extension.h>
#include <gperftools/malloc_extension_c.h>

#include <algorithm>

#include "report/report.h"

static_assert(kMallocExtensionHistogramSize == kMallocHistogramSize);
static_assert(static_cast<int>(MallocExtension_kOwned) == MallocExtension::kOwned);
static_assert(static_cast<int>(MallocExtension_kNotOwned) == MallocExtension::kNotOwned);

namespace {

MallocExtension& Extension() { return *MallocExtension::instance(); }

}  // namespace

extern "C" {

int MallocExtension_VerifyAllMemory(void) { return Extension().VerifyAllMemory(); }
int MallocExtension_VerifyNewMemory(const void* p) { return Extension().VerifyNewMemory(p); }
int MallocExtension_VerifyArrayNewMemory(const void* p) {
  return Extension().VerifyArrayNewMemory(p);
}
int MallocExtension_VerifyMallocMemory(const void* p) { return Extension().VerifyMallocMemory(p); }

int MallocExtension_MallocMemoryStats(int* blocks, size_t* total,
                                      int histogram[kMallocExtensionHistogramSize]) {
  return Extension().MallocMemoryStats(blocks, total, histogram);
}

void MallocExtension_GetStats(char* buffer, int buffer_length) {
  Extension().GetStats(buffer, buffer_length);
}

size_t MallocExtension_GetStatsJson(char* buffer, size_t buffer_length) {
  char none[1];
  tcmalloc::BufferSink sink(buffer_length > 0 ? buffer : none, std::max<size_t>(buffer_length, 1));
  tcmalloc::WriteJsonReport(sink, tcmalloc::Detail::kAll);
  return sink.written();
}

int MallocExtension_GetNumericProperty(const char* property, size_t* value) {
  return Extension().GetNumericProperty(property, value);
}
int MallocExtension_SetNumericProperty(const char* property, size_t value) {
  return Extension().SetNumericProperty(property, value);
}

void MallocExtension_MarkThreadIdle(void) { Extension().MarkThreadIdle(); }
void MallocExtension_MarkThreadBusy(void) { Extension().MarkThreadBusy(); }
void MallocExtension_MarkThreadTemporarilyIdle(void) { Extension().MarkThreadTemporarilyIdle(); }

void MallocExtension_ReleaseToSystem(size_t num_bytes) { Extension().ReleaseToSystem(num_bytes); }
void MallocExtension_ReleaseFreeMemory(void) { Extension().ReleaseFreeMemory(); }
void MallocExtension_SetMemoryReleaseRate(double rate) { Extension().SetMemoryReleaseRate(rate); }
double MallocExtension_GetMemoryReleaseRate(void) { return Extension().GetMemoryReleaseRate(); }

size_t MallocExtension_GetEstimatedAllocatedSize(size_t size) {
  return Extension().GetEstimatedAllocatedSize(size);
}
size_t MallocExtension_GetAllocatedSize(const void* p) { return Extension().GetAllocatedSize(p); }
size_t MallocExtension_GetThreadCacheSize(void) { return Extension().GetThreadCacheSize(); }

MallocExtension_Ownership MallocExtension_GetOwnership(const void* p) {
  return static_cast<MallocExtension_Ownership>(Extension().GetOwnership(p));
}

}  // extern "C"
