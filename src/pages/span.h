// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A run of pages.

#ifndef TCMALLOC_PAGES_SPAN_H_
#define TCMALLOC_PAGES_SPAN_H_

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/intrusive_list.h"
#include "base/relaxed.h"
#include "pages/page_types.h"

namespace tcmalloc {

// A PageId or Length of a span that other threads may read while its owner changes it.
template <typename T>
class SharedPages : public Relaxed<T> {
 public:
  using Relaxed<T>::Relaxed;
  using Relaxed<T>::operator=;

  constexpr T value() const { return *this; }
  auto index() const { return value().index(); }
  auto address() const { return value().address(); }
  auto start() const { return value().start(); }
  auto pages() const { return value().pages(); }
  auto bytes() const { return value().bytes(); }
};

// Names a sample of the program's allocations; 0 names none.
using SampleId = uint32_t;

// The name of a central free list, by relaxed atomic accesses. Other lists read it of any span,
// also while the pool makes the span's record anew: so a new one is written atomically as well.
class CentralName {
 public:
  static constexpr uint16_t kNone = UINT16_MAX;

  CentralName() { *this = kNone; }
  CentralName& operator=(uint16_t name) {
    __atomic_store_n(&name_, name, __ATOMIC_RELAXED);
    return *this;
  }
  operator uint16_t() const {  // NOLINT: converts like the number that it is
    return __atomic_load_n(&name_, __ATOMIC_RELAXED);
  }

 private:
  uint16_t name_;
};

// One contiguous run of pages, free or in use. Spans come from a pool that never gives memory
// back, so that a stale page map entry still points at a Span, whose state tells that it is stale.
//
// Owner, by state:
//   kUnused    the pool
//   kFree      the page heap; the memory is or may be resident
//   kReturned  the page heap; the memory was given back to the system and reads as zero
//   kInTransit the page heap, which is making a system call on it outside its lock
//   kLarge     the application: one object
//   kSmall     a central free list: objects of one size class
//   kSampled   SampledObjects: a page of small objects that are samples
//
// Invariant of a kSmall span with `capacity` objects: allocated <= carved <= capacity, and
// carved - allocated objects are marked as free. Objects past `carved` were never touched.
// allocated counts every object that the span has given out, whether the application or a cache
// has it now.
//
// Only the owner changes a span. A lookup of a foreign pointer or of a stale entry reads place,
// state, class and `carved` of any span; statistics read the numbers of allocated objects; the page
// heap reads the states of neighbours. Such readers may see a mixture of old and new.
struct Span : ListNode {
  enum class State : uint8_t { kUnused, kFree, kReturned, kInTransit, kLarge, kSmall, kSampled };

  static constexpr uint16_t kNoCentral = CentralName::kNone;

  // Not defaulted, because the whole record would be filled with zeros first; see CentralName.
  Span() {}  // NOLINT(modernize-use-equals-default)

  SharedPages<PageId> first;
  SharedPages<Length> length;
  // kSmall: see FreeBits
  // kSampled: address of a SampledPage
  // kLarge: see SetSample
  // kReturned: how many of its pages went back to offset growth
  uintptr_t details = 0;
  Relaxed<uint32_t> allocated = 0;  // kSmall; kSampled: units of a SampledPage
  Relaxed<uint32_t> carved = 0;     // kSmall
  uint32_t capacity = 0;            // likewise
  Relaxed<uint8_t> size_class = 0;  // kSmall; kSampled: that of a unit
  Relaxed<State> state = State::kUnused;
  bool zeroed = false;  // every byte is known to read as zero
  uint8_t rank = 0;     // kSmall: which list of its central free list holds it
  // kLarge: the block has grown, so the page heap keeps the pages behind it unused while it can.
  Relaxed<bool> grows = false;
  // The name, among those of all classes, of the central free list that has the span in its care,
  // and under whose lock this changes; kNoCentral if none has. Objects that were handed out keep
  // it.
  CentralName central;
  // kSmall: one of the samples among its objects, which leads to the others; 0 if there is none.
  // Changed by the owners of samples, under a lock of theirs.
  Relaxed<SampleId> first_sample = 0;

  PageId end() const { return first + length; }
  char* start() const { return first.start(); }
  size_t bytes() const { return length.bytes(); }
  // Sets what a kLarge span says of samples: the name that its block has as one, if it is one, and
  // how many points of the sampling process were expected in the bytes that it got so far, which
  // gives the probability with which it became one.
  void SetSample(SampleId id, float points) {
    details = uintptr_t{std::bit_cast<uint32_t>(points)} << 32 | id;
  }
  // Require kLarge.
  SampleId sample() const { return static_cast<SampleId>(details); }
  float expected_points() const {
    return std::bit_cast<float>(static_cast<uint32_t>(details >> 32));
  }
  bool in_use() const {
    const State now = state;
    return now >= State::kLarge;
  }
  bool Contains(PageId page) const { return first <= page && page < end(); }
};

// The metadata budget: for spans of 8 KiB and more, one cache line per span stays below one
// percent.
static_assert(sizeof(Span) <= 64);

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGES_SPAN_H_
