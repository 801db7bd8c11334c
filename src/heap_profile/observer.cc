// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The observer of libraries with profiles.

#include "heap/observer.h"

#include <algorithm>
#include <cerrno>
#include <cstdint>

#include "central/sampled_objects.h"
#include "heap/heap.h"
#include "heap_profile/caller_stack.h"
#include "heap_profile/profiles.h"
#include "heap_profile/sample_weight.h"
#include "size_class/size_classes.h"
#include "system/clock.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constinit SampledObjects<PageHeaps> objects{heap.page_heaps(), heap.page_map(), heap.arena()};

// Records a sample of which one of `counted` bytes was drawn. Sets everything that the caller left
// open.
SampleId Record(Sample sample, size_t counted) {
  const int saved_errno = errno;
  const auto period = static_cast<double>(std::max<uint64_t>(heap.sample_period(), 1));
  sample.weight = SampleWeight(static_cast<double>(std::max<size_t>(counted, 1)), period);
  sample.time_ns = MonotonicNanoseconds();
  sample.thread = static_cast<uint32_t>(system_calls.gettid());
  const CallerStack stack;
  sample.stack = profiles.stacks.Add(stack.frames());
  const SampleId id = profiles.samples.Add(sample);
  if (id == 0 && sample.stack != 0) profiles.stacks.Release(sample.stack);
  errno = saved_errno;
  return id;
}

}  // namespace

constinit Profiles profiles;

uint64_t InitialSamplePeriod(const Options& options) {
  profiles.samples.set_limit(options.max_samples);
  return options.sample_parameter;
}

void* NewSampledObject(uint8_t c) { return objects.New(c); }

void RecordSmallSample(void* object, uint8_t c, size_t size, size_t alignment) {
  const Sample sample{.address = reinterpret_cast<uintptr_t>(object),
                      .requested = size,
                      .allocated = kSizeClasses[c].size,
                      .alignment = static_cast<uint32_t>(alignment)};
  const SampleId id = Record(sample, size);
  if (id != 0) objects.SetSample(object, id);
}

void RecordLargeSample(Span* span, size_t size, size_t alignment) {
  const Sample sample{.address = reinterpret_cast<uintptr_t>(span->start()),
                      .requested = size,
                      .allocated = span->bytes(),
                      .alignment = static_cast<uint32_t>(std::min<size_t>(alignment, UINT32_MAX))};
  span->free_list = Record(sample, span->bytes());
}

void FreeSampledObject(Span* span, const void* object) {
  const SampleId id = objects.Delete(span, object);
  if (id != 0) NoteSampleFreed(id);
}

void NoteSampleFreed(SampleId id) {
  const Sample sample = profiles.samples.Remove(id);
  if (sample.stack != 0) profiles.stacks.Release(sample.stack);
}

void NoteSampleResized(const Span* span, size_t size) {
  profiles.samples.Resize(span->sample(), size, span->bytes());
}

SampledMemory CountSampledMemory() {
  const SampledObjectsStats stats = objects.stats();
  return {.span_bytes = stats.span_bytes, .in_use_bytes = stats.in_use_bytes};
}

}  // namespace tcmalloc
