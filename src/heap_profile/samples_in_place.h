// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Samples that stay where they were allocated.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLES_IN_PLACE_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLES_IN_PLACE_H_

#include "base/spin_lock.h"
#include "heap_profile/sample_table.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// No two objects of a page or more begin in the same page. So the page in which a sample of that
// size begins can do without its class in the page map's window, which makes each free of that
// object take the slow path, and no other. A sample that moved would leave the memory that it does
// not use to a cache, which for an object of this size may be most of what the cache has.
//
// The samples among the objects of a span are linked through their records.
//
// Thread safe. Called in the slow path, so that no signal handler and no fork meets the lock.
class SamplesInPlace {
 public:
  static constexpr bool MayHave(uint8_t c) { return kSizeClasses[c].size >= kPageSize; }

  constexpr SamplesInPlace(SampleTable& samples, PageMap& page_map)
      : samples_(samples), page_map_(page_map) {}
  SamplesInPlace(const SamplesInPlace&) = delete;
  SamplesInPlace& operator=(const SamplesInPlace&) = delete;

  // Adds the sample of an object, which the caller owns, of a class that MayHave it.
  void Add(const void* object, SampleId sample) TCMALLOC_EXCLUDES(lock_);

  // Returns the sample of an object that is about to be freed, which is none any more. 0 if it was
  // none.
  SampleId Take(Span* span, const void* object) TCMALLOC_EXCLUDES(lock_);

 private:
  SampleTable& samples_;
  PageMap& page_map_;
  SpinLock lock_{LockRank::kProfile};  // of the links between samples
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLES_IN_PLACE_H_
