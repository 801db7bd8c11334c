// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/samples_in_place.h"

#include <cstdint>

namespace tcmalloc {

void SamplesInPlace::Add(const void* object, SampleId sample) {
  const PageId page = PageId::Containing(object);
  Span* span = page_map_.Get(page);
  page_map_.SetClassAt(page, 0);
  SpinLockHolder holder(lock_);
  samples_.SetNext(sample, span->first_sample);
  span->first_sample = sample;
}

SampleId SamplesInPlace::Take(Span* span, const void* object) {
  const auto address = reinterpret_cast<uintptr_t>(object);
  SpinLockHolder holder(lock_);
  SampleId before = 0;
  SampleId sample = span->first_sample;
  while (sample != 0 && samples_.AddressOf(sample) != address) {
    before = sample;
    sample = samples_.Next(sample);
  }
  if (sample == 0) return 0;
  const SampleId next = samples_.Next(sample);
  if (before != 0) {
    samples_.SetNext(before, next);
  } else {
    span->first_sample = next;
  }
  page_map_.SetClassAt(PageId::Containing(object), span->size_class);
  return sample;
}

}  // namespace tcmalloc
