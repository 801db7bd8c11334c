// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The observer of libraries with profiles.

#include "heap/observer.h"

#include <algorithm>
#include <cstdint>

#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "heap_profile/profiles.h"
#include "heap_profile/sample_weight.h"
#include "size_class/size_classes.h"
#include "system/clock.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

double BytesFor(const Sample& sample) {
  return sample.weight * static_cast<double>(sample.allocated);
}

// Records a sample of which one of `counted` bytes was drawn. Sets everything that the caller left
// open. Returns 0 if it was left out.
SampleId Record(Sample sample, size_t counted) {
  const auto period = static_cast<double>(std::max<uint64_t>(heap.sample_period(), 1));
  sample.weight = SampleWeight(static_cast<double>(std::max<size_t>(counted, 1)), period);
  sample.time_ns = MonotonicNanoseconds();
  sample.thread = static_cast<uint32_t>(system_calls.gettid());
  const CallerStack stack;
  sample.stack = stack_table.Add(stack.frames());
  const SampleId id = sample_table.Add(sample);
  if (id != 0) {
    profiles.peak.NoteChange(BytesFor(sample));
    profiles.allocated.Append({.sample = sample});
  } else if (sample.stack != 0) {
    stack_table.Release(sample.stack);
  }
  return id;
}

}  // namespace

constinit StackTable stack_table;
constinit SampleTable sample_table;
constinit Profiles profiles;

uint64_t InitialSamplePeriod(const Options& options) {
  sample_table.set_limit(options.max_samples);
  return options.sample_parameter;
}

void SetSamplePeriod(uint64_t bytes) { heap.sample_period() = bytes; }

void* NewSampledObject(uint8_t c) { return profiles.objects.New(c); }

void RecordSmallSample(void* object, uint8_t c, size_t size, size_t alignment) {
  const Sample sample{.address = reinterpret_cast<uintptr_t>(object),
                      .requested = size,
                      .allocated = kSizeClasses[c].size,
                      .alignment = static_cast<uint32_t>(alignment)};
  const SampleId id = Record(sample, size);
  if (id != 0) profiles.objects.SetSample(object, id);
}

void RecordLargeSample(Span* span, size_t size, size_t alignment) {
  const Sample sample{.address = reinterpret_cast<uintptr_t>(span->start()),
                      .requested = size,
                      .allocated = span->bytes(),
                      .alignment = static_cast<uint32_t>(std::min<size_t>(alignment, UINT32_MAX))};
  span->free_list = Record(sample, span->bytes());
}

void FreeSampledObject(Span* span, const void* object) {
  const SampleId id = profiles.objects.Delete(span, object);
  if (id != 0) NoteSampleFreed(id);
}

void NoteSampleFreed(SampleId id) {
  const Sample sample = sample_table.Remove(id);
  profiles.peak.NoteChange(-BytesFor(sample));
  profiles.freed.Append({.sample = sample, .end_ns = MonotonicNanoseconds()});
  if (sample.stack != 0) stack_table.Release(sample.stack);
}

void NoteSampleResized(const Span* span, size_t size) {
  const Sample old = sample_table.Resize(span->sample(), size, span->bytes());
  const double change = static_cast<double>(span->bytes()) - static_cast<double>(old.allocated);
  profiles.peak.NoteChange(old.weight * change);
}

SampledMemory CountSampledMemory() {
  const SampledObjectsStats stats = profiles.objects.stats();
  return {.span_bytes = stats.span_bytes, .in_use_bytes = stats.in_use_bytes};
}

}  // namespace tcmalloc
