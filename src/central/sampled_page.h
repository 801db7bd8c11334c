// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A page of small objects that are samples.

#ifndef TCMALLOC_CENTRAL_SAMPLED_PAGE_H_
#define TCMALLOC_CENTRAL_SAMPLED_PAGE_H_

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "pages/page_types.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc {

// The record of a kSampled span, which is one page. Objects of all classes of less than a page lie
// in it, each in a run of units of its own, aligned as objects of its class are.
//
// A place is the index of a unit. The object at a place is in use if its unit is used and has a
// class. Units that are not used keep the class of an object that was freed, so that a second free
// finds it, until another object takes them.
//
// Whoever has SampledObjects' lock changes it. The owner of an object may read what is at its
// place.
struct SampledPage {
  static constexpr size_t kUnits = 64;
  static constexpr size_t kUnitBytes = kPageSize / kUnits;
  static constexpr size_t kNoPlace = kUnits;
  // A kSampled span has it, so that what it has given out is told as of other small objects.
  static constexpr uint8_t kUnitClass = SmallestSizeClassFor(kUnitBytes);
  static_assert(kSizeClasses[kUnitClass].size == kUnitBytes);

  uint64_t used = 0;                  // bit i: unit i belongs to an object in use
  Relaxed<SampleId> samples[kUnits];  // of the object that begins there
  Relaxed<uint8_t> classes[kUnits];   // likewise; 0 if none begins there

  // Returns the record of a kSampled span.
  static SampledPage& Of(const Span* span) {
    return *reinterpret_cast<SampledPage*>(span->details);
  }
  // Returns how many units an object of class `c` takes.
  static size_t UnitsOf(uint8_t c) { return (kSizeClasses[c].size + kUnitBytes - 1) / kUnitBytes; }

  // Returns the first place with room for an object of class `c`, or kNoPlace. Requires a class of
  // less than a page.
  size_t FindRoom(uint8_t c) const {
    const size_t units = UnitsOf(c);
    uint64_t begins = ~used;  // bit i: `length` units from the ith on are not used
    for (size_t length = 1, more = 0; length < units; length += more) {
      more = std::min(length, units - length);
      begins &= begins >> more;
    }
    const size_t aligned =
        std::max(size_t{1} << std::countr_zero(kSizeClasses[c].size), kUnitBytes);
    begins &= ~uint64_t{0} / ((uint64_t{1} << aligned / kUnitBytes) - 1);
    return static_cast<size_t>(std::countr_zero(begins));
  }

  // Puts an object of class `c` at a place from FindRoom.
  void Take(size_t place, uint8_t c, SampleId sample) {
    used |= MaskOf(place, c);
    for (size_t i = 0; i < UnitsOf(c); ++i) classes[place + i] = 0;
    classes[place] = c;
    samples[place] = sample;
  }
  // Returns true if the object at `place`, which has a class, is in use.
  bool InUse(size_t place) const { return (used >> place & 1) != 0; }
  // Returns the place of the object in use that has the byte at `offset`, or kNoPlace.
  size_t FindAround(size_t offset) const {
    size_t place = offset / kUnitBytes;
    if (!InUse(place)) return kNoPlace;
    while (classes[place] == 0) --place;
    return offset - place * kUnitBytes < kSizeClasses[classes[place]].size ? place : kNoPlace;
  }
  // Frees the object at `place`.
  void Leave(size_t place) { used &= ~MaskOf(place, classes[place]); }

 private:
  static uint64_t MaskOf(size_t place, uint8_t c) {
    return ~uint64_t{0} >> (kUnits - UnitsOf(c)) << place;
  }
};

// Returns the class of the object that begins at `address` in a kSampled span, or began there last;
// 0 if none does.
inline uint8_t ClassOfSampled(const Span* span, const void* address) {
  const auto offset = static_cast<size_t>(static_cast<const char*>(address) - span->start());
  if (offset % SampledPage::kUnitBytes != 0) return 0;
  return SampledPage::Of(span).classes[offset / SampledPage::kUnitBytes];
}

// Returns the class of the small object at `object`, in a kSmall or kSampled span.
inline uint8_t ClassOfObject(const Span* span, const void* object) {
  const bool sampled = span->state == Span::State::kSampled;
  return sampled ? ClassOfSampled(span, object) : uint8_t{span->size_class};
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_SAMPLED_PAGE_H_
