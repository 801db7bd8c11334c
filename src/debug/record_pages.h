// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The pages in which records of debug blocks lie.

#ifndef TCMALLOC_DEBUG_RECORD_PAGES_H_
#define TCMALLOC_DEBUG_RECORD_PAGES_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/relaxed.h"
#include "debug/block_record.h"

namespace tcmalloc {

// Tells records from other addresses, because a word in a block that names its record may have been
// overwritten. A page has one place, for which it may lose to another page; whoever needs one of
// its records then has to search the table. Begins as zeros. Thread safe.
class RecordPages {
 public:
  static constexpr size_t kPageBytes = 4096;

  constexpr RecordPages() = default;
  RecordPages(const RecordPages&) = delete;
  RecordPages& operator=(const RecordPages&) = delete;

  // Adds a page of nothing but records, which stays one for good.
  void Add(const void* page) { places_[PlaceOf(page)] = NumberOf(page); }

  // Returns true if a record lies at `address`, and false if there is none or it is not known.
  TCMALLOC_ALWAYS_INLINE bool Hold(const void* address) const {
    return places_[PlaceOf(address)] == NumberOf(address) && NumberOf(address) != 0 &&
           reinterpret_cast<uintptr_t>(address) % alignof(BlockRecord) == 0;
  }

 private:
  static constexpr size_t kPlaces = size_t{1} << 16;

  static uintptr_t NumberOf(const void* address) {
    return reinterpret_cast<uintptr_t>(address) / kPageBytes;
  }
  static size_t PlaceOf(const void* address) { return NumberOf(address) % kPlaces; }

  Relaxed<uintptr_t> places_[kPlaces];  // the number of a page; 0 for none
};

extern constinit RecordPages record_pages;

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_RECORD_PAGES_H_
