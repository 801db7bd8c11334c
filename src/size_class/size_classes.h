// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The sizes that small objects come in, computed and checked at compile time for the configured
// page size.
//
// Sizes. 8, then multiples of 16 up to 128, then eight equal steps per doubling up to
// kMaxSmallSize. A request over 112 bytes leaves at most 12.5 % of its object unused; below that
// the 16-byte alignment of objects decides.
//
// Objects of 256, 512 and 1024 bytes begin in a sixteenth to a quarter of the sets of a processor's
// cache, so that their first lines evict each other. Requests for these sizes get objects that are
// a little longer, which begin in every set; those for aligned blocks still get powers of two.
//
// Spans. A class takes the smallest span, so that spans drain, which
//   - has at least 8 KiB, holds eight objects if that fits 64 KiB, and four if that fits 128 KiB,
//     so that central free lists seldom visit the page heap,
//   - keeps the span's record, its page map entries and its tail within 1 % of its objects for
//     those of at most 1 KiB,
//   - leaves a tail of at most 0.5 % up to 1.5 KiB and 1.5 % up to 4 KiB, and
//   - wastes at most 12.5 % of its memory when every object is asked for by the smallest size that
//     rounds up to it.
// If no span of at most kMaxSpanPages satisfies all of it, the one with the smallest tail is taken.

#ifndef TCMALLOC_SIZE_CLASS_SIZE_CLASSES_H_
#define TCMALLOC_SIZE_CLASS_SIZE_CLASSES_H_

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "pages/page_types.h"

namespace tcmalloc {

// Objects of more bytes get spans of their own.
inline constexpr size_t kMaxSmallSize = size_t{256} << 10;

// The most objects that move between a thread and the central lists at once. A multiple of eight,
// so that a batch fills whole cache lines.
inline constexpr size_t kDefaultMaxBatch = 248;

// A size class is a plain uint8_t, here and in the page map: the fast paths index arrays with it.
// Class 0 means none.
struct SizeClassInfo {
  uint64_t reciprocal = 0;  // ceil(2^64 / size)
  uint32_t size = 0;        // bytes of one object
  uint16_t objects = 0;     // in a span
  uint8_t pages = 0;        // of a span
  uint8_t batch = 0;        // objects that move at once

  constexpr size_t span_bytes() const { return Length(pages).bytes(); }
};

namespace size_class_internal {

inline constexpr size_t kFineStep = 16;
inline constexpr size_t kLastFineSize = 128;
inline constexpr size_t kStepsPerDoubling = 8;
// Requests for a power of two from the first to the last get more.
inline constexpr size_t kFirstLengthened = 256;
inline constexpr size_t kLastLengthened = 1024;

// Returns by how much: 16 bytes, but 32 for the last, of which 31 fill four pages of 8 KiB but for
// a tail that is shorter than a cache line.
consteval size_t Lengthening(size_t size) {
  return size < kLastLengthened ? kFineStep : 2 * kFineStep;
}

inline constexpr size_t kMaxSpanPages = std::max<size_t>(16, kMaxSmallSize >> kPageShift);
inline constexpr size_t kSpanRecordBytes = 64;
// The bytes of the maps for one page: a pointer in the span map and a byte in the class window.
inline constexpr size_t kMapBytesPerPage = 9;

// The bytes that one batch moves of objects that are too large for a full batch, unless
// FewestInBatch requires more.
inline constexpr size_t kBatchBytes = size_t{64} << 10;

// With `e = reciprocal * size - 2^64`, which is below `size`, an offset `q * size + r` times the
// reciprocal is `q * 2^64 + q * e + r * reciprocal`. As long as (q + 1) * e is below the
// reciprocal, as it is for offsets below 2^22 and sizes of at most 2^18, the upper half of the
// product is the quotient q, and the lower half is below the reciprocal only if r is 0.
__extension__ using Product = unsigned __int128;
static_assert(kMaxSmallSize <= size_t{1} << 18);
static_assert(kMaxSpanPages << kPageShift <= size_t{1} << 22);

// Returns true for the size of a class of which only aligned requests take objects.
constexpr bool IsForAligned(size_t size) {
  return std::has_single_bit(size) && kFirstLengthened <= size && size <= kLastLengthened;
}

consteval size_t NextSize(size_t size) {
  if (size < kFineStep) return kFineStep;
  if (IsForAligned(size)) return size + Lengthening(size);
  if (size < kLastFineSize) return size + kFineStep;
  const size_t step = std::bit_floor(size) / kStepsPerDoubling;
  return AlignDown(size, step) + step;
}

consteval size_t CountClasses() {
  size_t count = 1;
  for (size_t size = sizeof(void*); size <= kMaxSmallSize; size = NextSize(size)) ++count;
  return count;
}

consteval size_t Tail(size_t size, size_t pages) { return (pages << kPageShift) % size; }

consteval bool SpanIsLargeEnough(size_t size, size_t pages) {
  const size_t span = pages << kPageShift;
  const size_t four = size <= size_t{32} << 10 ? 4 * size : size;
  const size_t eight = std::min(8 * size, size_t{64} << 10);
  return span >= std::max({size_t{8} << 10, size, four, eight});
}

// `previous` is the size of the next smaller class of which any request may take an object.
consteval bool SpanIsTight(size_t size, size_t previous, size_t pages) {
  const size_t span = pages << kPageShift;
  const size_t tail = Tail(size, pages);
  const size_t metadata = kSpanRecordBytes + kMapBytesPerPage * pages;
  if (size <= 1024 && (metadata + tail) * 100 > span - tail) return false;
  if (size <= 1536 && tail * 1000 > span * 5) return false;
  if (size <= 4096 && tail * 1000 > span * 15) return false;
  const size_t least_used = (span / size) * (previous + 1);
  return size < kLastFineSize || (span - least_used) * 8 <= span;
}

consteval size_t SpanPages(size_t size, size_t previous) {
  size_t best = 0;
  for (size_t pages = 1; pages <= kMaxSpanPages; ++pages) {
    if (!SpanIsLargeEnough(size, pages)) continue;
    if (SpanIsTight(size, previous, pages)) return pages;
    if (best == 0 || Tail(size, pages) * best < Tail(size, best) * pages) best = pages;
  }
  return best;
}

consteval size_t FewestInBatch(size_t size) {
  if (size <= kBatchBytes / 8) return 8;
  return size <= kBatchBytes / 2 ? 4 : 2;
}

consteval SizeClassInfo MakeClass(size_t size, size_t previous) {
  SizeClassInfo info;
  const size_t pages = SpanPages(size, previous);
  info.reciprocal = UINT64_MAX / size + 1;
  info.size = static_cast<uint32_t>(size);
  info.objects = static_cast<uint16_t>((pages << kPageShift) / size);
  info.pages = static_cast<uint8_t>(pages);
  info.batch =
      static_cast<uint8_t>(std::clamp(kBatchBytes / size, FewestInBatch(size), kDefaultMaxBatch));
  return info;
}

consteval auto MakeClasses() {
  std::array<SizeClassInfo, CountClasses()> classes;
  size_t previous = 0;
  for (size_t i = 1, size = sizeof(void*); i < classes.size(); ++i) {
    classes[i] = MakeClass(size, previous);
    if (!IsForAligned(size)) previous = size;
    size = NextSize(size);
  }
  return classes;
}

}  // namespace size_class_internal

// The number of classes, including class 0.
inline constexpr size_t kSizeClassCount = size_class_internal::CountClasses();
static_assert(60 <= kSizeClassCount && kSizeClassCount <= 130);

inline constexpr std::array<SizeClassInfo, kSizeClassCount> kSizeClasses =
    size_class_internal::MakeClasses();
static_assert(sizeof(SizeClassInfo) == 16);
static_assert(kSizeClasses.back().size == kMaxSmallSize);

namespace size_class_internal {

inline constexpr size_t kDirectLimit = kLastLengthened + Lengthening(kLastLengthened);
inline constexpr size_t kMediumShift = 7;
inline constexpr size_t kMediumRound = (size_t{1} << kMediumShift) - 1;
inline constexpr size_t kMediumEntries = (kMaxSmallSize >> kMediumShift) + 1;
// Classes above kDirectLimit are multiples of the medium table's unit.
static_assert(kLastLengthened / kStepsPerDoubling == size_t{1} << kMediumShift);

// Entry i is the smallest class for any request that holds i << shift bytes.
template <size_t entries>
consteval std::array<uint8_t, entries> MakeTable(size_t shift) {
  std::array<uint8_t, entries> table{};
  uint8_t size_class = 1;
  for (size_t i = 0; i < entries; ++i) {
    while (kSizeClasses[size_class].size < i << shift ||
           IsForAligned(kSizeClasses[size_class].size)) {
      ++size_class;
    }
    table[i] = size_class;
  }
  return table;
}

}  // namespace size_class_internal

// Size class by size, up to 1056 bytes.
inline constexpr std::array<uint8_t, size_class_internal::kDirectLimit + 1> kClassBySize =
    size_class_internal::MakeTable<size_class_internal::kDirectLimit + 1>(0);

// Size class by MediumIndex(size), up to kMaxSmallSize.
inline constexpr std::array<uint8_t, size_class_internal::kMediumEntries> kClassByMediumIndex =
    size_class_internal::MakeTable<size_class_internal::kMediumEntries>(
        size_class_internal::kMediumShift);

constexpr size_t MediumIndex(size_t size) {
  return (size + size_class_internal::kMediumRound) >> size_class_internal::kMediumShift;
}

// Returns the smallest class for requests of `size` bytes without an alignment; never 0. Objects of
// 16 bytes and more are aligned to 16. Requires size <= kMaxSmallSize.
TCMALLOC_ALWAYS_INLINE constexpr uint8_t SizeClassFor(size_t size) {
  if (TCMALLOC_LIKELY(size <= size_class_internal::kDirectLimit)) return kClassBySize[size];
  return kClassByMediumIndex[MediumIndex(size)];
}

// Returns the smallest class whose objects hold `size` bytes, for aligned requests too. Requires
// 0 < size <= kMaxSmallSize.
constexpr uint8_t SmallestSizeClassFor(size_t size) {
  const uint8_t size_class = SizeClassFor(size);
  return static_cast<uint8_t>(size_class - (kSizeClasses[size_class - 1].size >= size ? 1 : 0));
}

// Returns the smallest class that holds `size` bytes and whose objects are all aligned to
// `alignment`, a power of two; 0 if there is none. Spans are aligned to pages only, which limits
// the alignment.
TCMALLOC_NOINLINE constexpr uint8_t SizeClassForAligned(size_t size, size_t alignment) {
  if (alignment > kPageSize || size > kMaxSmallSize) return 0;
  const size_t rounded = AlignUp(size == 0 ? 1 : size, alignment);
  if (rounded > kMaxSmallSize) return 0;
  if (alignment <= size_class_internal::kFineStep) return SizeClassFor(rounded);
  // Ends at the next power of two at the latest.
  uint8_t size_class = SmallestSizeClassFor(rounded);
  while (!IsAligned(kSizeClasses[size_class].size, alignment)) ++size_class;
  return size_class;
}

// Returns the smallest larger class whose objects are aligned as those of `size_class`, or
// `size_class` itself if there is none. Requires a nonzero class.
constexpr uint8_t LargerSizeClass(uint8_t size_class) {
  const size_t size = kSizeClasses[size_class].size;
  for (size_t larger = size_class + size_t{1}; larger < kSizeClassCount; ++larger) {
    if (IsAligned(kSizeClasses[larger].size, size & -size)) return static_cast<uint8_t>(larger);
  }
  return size_class;
}

// Returns the fewest bytes, not 0, for which a request gets the class: without an alignment, or
// with one that smaller classes have, too. Requires a nonzero class.
constexpr size_t LeastRequest(uint8_t size_class) {
  size_t previous = size_class - size_t{1};
  if (size_class_internal::IsForAligned(kSizeClasses[previous].size)) --previous;
  return kSizeClasses[previous].size + size_t{1};
}

// The bits that are zero in the address of every object of a class, because spans begin with a
// page. Requires a nonzero class.
constexpr uintptr_t MisplacedBits(uint8_t size_class) {
  const uintptr_t size = kSizeClasses[size_class].size;
  return (size - 1) & ~size & (kPageSize - 1);
}

// Returns the index of the object in its span that holds the byte at `offset`, from the reciprocal
// of the class. Requires an offset inside the span.
constexpr size_t ObjectIndexBy(uint64_t reciprocal, size_t offset) {
  return static_cast<size_t>(size_class_internal::Product{offset} * reciprocal >> 64);
}

// Works as ObjectIndexBy. Requires a nonzero class. An offset in the tail gives info.objects.
constexpr size_t ObjectIndex(size_t offset, uint8_t size_class) {
  return ObjectIndexBy(kSizeClasses[size_class].reciprocal, offset);
}

// Returns true if an object of a class begins at `offset`, never for class 0. Any offset may be
// asked for: one that is larger than the span gives no index of it.
constexpr bool IsObjectStart(size_t offset, const SizeClassInfo& info) {
  const size_class_internal::Product product =
      size_class_internal::Product{offset} * info.reciprocal;
  return static_cast<uint64_t>(product) < info.reciprocal &&
         static_cast<uint64_t>(product >> 64) < info.objects;
}
constexpr bool IsObjectStart(size_t offset, uint8_t size_class) {
  return IsObjectStart(offset, kSizeClasses[size_class]);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SIZE_CLASS_SIZE_CLASSES_H_
