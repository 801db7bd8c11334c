// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The events that the heap and the allocator report to observers. The functions are chosen by link:
// heap_profile/none defines them for libraries without profiles, heap_profile for those with.

#ifndef TCMALLOC_HEAP_OBSERVER_H_
#define TCMALLOC_HEAP_OBSERVER_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/attributes.h"
#include "cache/sample_countdown.h"
#include "options/options.h"
#include "pages/span.h"

namespace tcmalloc {

// A request for a block that is a sample.
struct SampledRequest {
  size_t size = 0;
  size_t alignment = 0;  // 0 if the program asked for none
  DrawnPeriod period = 0;
};

// Returns the mean bytes between two samples at the start; 0 takes none.
uint64_t InitialSamplePeriod(const Options& options);

// Returns true if the process will be copied while its threads wait. That takes the less time the
// larger its pages are. Always false in a library without profiles.
bool CopiesProcess(const Options& options);

// Starts to record every block if the options ask for the leak checker. Called before the program
// gets its first block, by libraries with profiles.
void StartLeakCheck(const Options& options);

// Sets the mean number of bytes between two samples from now on; 0 takes none. Does nothing in a
// library without profiles.
void SetSamplePeriod(uint64_t bytes);

// Returns the bytes of a guarded block. Ends the process if no block in use begins there. A message
// says that `call` noticed it, unless that is null. Not only called in the slow path.
TCMALLOC_COLD size_t GuardedBytes(const void* block, const char* call);

// All below are called in the slow path, where no lock is held and no fork of another thread takes
// place.

// Returns the block that the program gets as a sample in place of `object`, of class `c`: a guarded
// block, the object itself if it is large, or else one in the memory for samples. Null if there is
// no such memory.
TCMALLOC_COLD void* NewSampledObject(void* object, uint8_t c, const SampledRequest& request);

// Record a sample before the program gets the block. An alignment of 0 means that the program asked
// for none.
//
// A block from NewSampledObject. `twin` is the object that the program would have got if it were no
// sample, and may be the block itself. Returns true if it has to stay in use until the sample is
// freed, and false if it is not needed.
TCMALLOC_COLD bool RecordSmallSample(void* object, const void* twin, const SampledRequest& request);
// A block in a span of its own, whose sample() it sets. Its expected_points() are set.
TCMALLOC_COLD void RecordLargeSample(Span* span, size_t size, size_t alignment);

// Frees an object in the memory for samples, which lies in `span`. Ends the process if it is free.
// Returns its twin if that was kept and is now to be freed in its place, else null.
TCMALLOC_COLD void* FreeSampledObject(Span* span, const void* object);
// Frees an address in the range of guarded blocks. Ends the process if no block in use begins
// there.
TCMALLOC_COLD void FreeGuardedBlock(const void* block);
// Notes that an object of a span of small objects is about to be freed, if it is a sample. Called
// if the span has a first_sample.
TCMALLOC_COLD void NoteObjectFreed(Span* span, const void* object);
// Notes that the block of a sample, in a span of its own, is about to be freed.
TCMALLOC_COLD void NoteSampleFreed(SampleId sample);
// Notes that the block of a sample, in a span of its own, has a new size, for a request of `size`
// bytes, and perhaps new expected_points().
TCMALLOC_COLD void NoteSampleResized(const Span* span, size_t size);

// Notes that the heap got so many bytes from the system.
TCMALLOC_COLD void NoteHeapGrowth(size_t bytes);

// A record with a stack, for the interfaces that give stacks to programs.
struct StackRecord {
  uint64_t count = 0;
  uint64_t bytes = 0;
  std::span<const uintptr_t> frames;  // return addresses, innermost first
};
using StackRecordVisitor = void (*)(const StackRecord& record, void* argument);

// Call visit(record, argument) for each live sample, with the bytes that the program asked for, and
// for each growth of the heap. A sample counts once, or as often as TextSamples of heap_profile/
// says. `visit` may allocate. Return false, without a call, in a library that has no such records.
// Not called in the slow path.
bool VisitSamples(StackRecordVisitor visit, void* argument);
bool VisitGrowths(StackRecordVisitor visit, void* argument);

// Stores the return addresses of the program that called the allocator, as seen from a hook that
// the allocator calls, and returns their number; see MallocHook_GetCallerStackTrace. Where it
// cannot tell hooks from the program, it leaves out `skip_count` frames. Returns 0 in a library
// without profiles. Not called in the slow path.
int CaptureCallerOfHook(void** result, int max_depth, int skip_count);

// Called in the child of a fork, where no other thread reads the records any more.
void ForgetReadersAfterFork();

// Does nothing. Makes the recorder of all blocks a part of static programs whose library has it.
void KeepRecorder();

// Calls the program's hooks for what the running thread has sampled and freed. Called outside the
// slow path, when the heap has errands.
void CallNotedHooks();

// Writes the profiles that options ask for when the program exits.
void WriteExitProfiles();
// Writes the profile that a signal has asked for, if one has. Called by the background thread,
// outside the slow path.
void WriteRequestedProfile();

// The memory for small samples.
struct SampledMemory {
  size_t span_bytes = 0;
  size_t in_use_bytes = 0;
};
SampledMemory CountSampledMemory();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_OBSERVER_H_
