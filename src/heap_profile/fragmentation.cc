// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/fragmentation.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>

#include "heap/heap.h"
#include "profile_format/scratch.h"
#include "size_class/size_classes.h"

namespace tcmalloc {
namespace {

// Where the block of a row would lie.
struct TwinPlace {
  uintptr_t start = 0;  // of the span; of a span that is gone, an address in it
  uint32_t row = 0;
  uint32_t others = 0;  // objects that the span has given out
  uint8_t size_class = 0;
  bool kept = false;  // by the sample, and among the objects that were given out
  bool gone = false;

  size_t span_bytes() const { return Length(kSizeClasses[size_class].pages).bytes(); }
  auto Order() const { return std::tuple(size_class, gone, start); }
  // Returns true if `next`, which follows in order, would be in the same span.
  bool IsWith(const TwinPlace& next) const {
    if (next.size_class != size_class || next.gone != gone) return false;
    return gone ? next.start - start < span_bytes() : next.start == start;
  }
};

TwinPlace PlaceOf(const Sample& sample, uint32_t row) {
  TwinPlace place{.start = sample.twin, .row = row, .kept = sample.keeps_twin};
  place.size_class = SmallestSizeClassFor(sample.allocated);
  const Span* span = heap.page_map().FindInUse(reinterpret_cast<const void*>(place.start));
  place.gone =
      span == nullptr || span->state != Span::State::kSmall || span->size_class != place.size_class;
  if (place.gone) return place;
  place.start = span->first.address();
  place.others = span->allocated;
  return place;
}

// Returns the free bytes that fall to each object of a span, of which `samples` lie elsewhere.
double Share(const TwinPlace& place, size_t samples) {
  const SizeClassInfo& info = kSizeClasses[place.size_class];
  const size_t in_use = place.others + samples;
  // The span of a twin that was just freed may be empty.
  if (in_use == 0 || in_use >= info.objects) return 0;
  return static_cast<double>((info.objects - in_use) * info.size) / static_cast<double>(in_use);
}

}  // namespace

void EstimatePinnedBytes(std::span<ProfileRow> rows) {
  const Scratch<TwinPlace> places(rows.size());
  if (places.data() == nullptr) return;
  size_t count = 0;
  for (size_t i = 0; i < rows.size(); ++i) {
    const Sample& sample = rows[i].sample;
    if (sample.twin != 0) places[count++] = PlaceOf(sample, static_cast<uint32_t>(i));
  }
  std::sort(places.data(), places.data() + count,
            [](const TwinPlace& a, const TwinPlace& b) { return a.Order() < b.Order(); });
  for (size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && places[begin].IsWith(places[end])) ++end;
    const size_t elsewhere =
        static_cast<size_t>(std::count_if(places.data() + begin, places.data() + end,
                                          [](const TwinPlace& place) { return !place.kept; }));
    const double share = Share(places[begin], elsewhere);
    for (size_t i = begin; i < end; ++i) rows[places[i].row].pinned = share;
  }
}

}  // namespace tcmalloc
