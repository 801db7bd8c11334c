// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The observer of libraries without profiles. Nothing is a sample there.

#include "heap/observer.h"

namespace tcmalloc {

uint64_t InitialSamplePeriod(const Options&) { return 0; }
bool CopiesProcess(const Options&) { return false; }
void SetSamplePeriod(uint64_t) {}
void* NewSampledObject(void*, uint8_t, const SampledRequest&) { return nullptr; }
bool RecordSmallSample(void*, const void*, const SampledRequest&) { return false; }
void RecordLargeSample(Span*, size_t, size_t) {}
void* FreeSampledObject(Span*, const void*) { return nullptr; }
void FreeGuardedBlock(const void*) {}
size_t GuardedBytes(const void*, const char*) { return 0; }
void NoteObjectFreed(Span*, const void*) {}
void NoteSampleFreed(SampleId) {}
void NoteSampleResized(const Span*, size_t) {}
void NoteHeapGrowth(size_t) {}
bool VisitSamples(StackRecordVisitor, void*) { return false; }
bool VisitGrowths(StackRecordVisitor, void*) { return false; }
int CaptureCallerOfHook(void**, int, int) { return 0; }
void ForgetReadersAfterFork() {}
void CallNotedHooks() {}
void WriteExitProfiles() {}
void WriteRequestedProfile() {}
SampledMemory CountSampledMemory() { return {}; }

}  // namespace tcmalloc
