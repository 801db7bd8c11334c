// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/fields.h"

#include <algorithm>
#include <cstddef>
#include <iterator>

#include "pages/page_types.h"
#include "report/documented_rows.h"

namespace tcmalloc {
namespace {

template <uint64_t Statistics::* figure>
uint64_t Of(const Statistics& statistics) {
  return statistics.*figure;
}

uint64_t Physical(const Statistics& statistics) { return statistics.physical(); }

uint64_t Virtual(const Statistics& statistics) { return statistics.mapped + statistics.metadata; }

uint64_t PageSize(const Statistics&) { return kPageSize; }

template <uint64_t SizeClassStatistics::* figure>
uint64_t OfClass(const SizeClassStatistics& of) {
  return of.*figure;
}

struct FieldRow {
  std::string_view name;
  std::string_view label;
  FieldGroup group;
  char sign;
  Unit unit;
  uint64_t (*value)(const Statistics&);
  std::string_view meaning;

  constexpr operator Field() const { return {name, label, group, sign, unit, value}; }
};

struct SizeClassFieldRow {
  std::string_view name;
  Unit unit;
  uint64_t (*value)(const SizeClassStatistics&);
  std::string_view meaning;

  constexpr operator SizeClassField() const { return {name, unit, value}; }
};

constexpr FieldRow kFieldRows[] = {
    {"in_use", "Bytes in use by application", FieldGroup::kMemory, ' ', Unit::kBytes,
     Of<&Statistics::in_use>,
     "What the program has, each block rounded up to its size class or to whole pages."},
    {"page_heap_free", "Bytes in page heap freelist", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::page_heap_free>, "Free pages that may have physical memory."},
    {"central_free", "Bytes in central cache freelist", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::central_free>,
     "Free in spans of small blocks, of which another block is in use; with the ends of spans that "
     "have no room for a block."},
    {"transfer_free", "Bytes in transfer cache freelist", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::transfer_free>, "Free, on the way from one thread or CPU to another."},
    {"thread_free", "Bytes in thread cache freelists", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::thread_free>, "Free, at hand for the thread that owns the cache."},
    {"cpu_free", "Bytes in CPU cache freelists", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::cpu_free>, "Free, at hand for whoever runs on the CPU."},
    {"metadata", "Bytes in malloc metadata", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::metadata>,
     "The allocator's own records, a bound: [what counts](#the-allocators-records)."},
    {"physical", "Actual memory used (physical + swap)", FieldGroup::kMemory, '=', Unit::kBytes,
     Physical,
     "The sum so far. At most so much is resident or in swap; less where the program has not "
     "touched all that it has."},
    {"page_heap_returned", "Bytes released to OS (aka unmapped)", FieldGroup::kMemory, '+',
     Unit::kBytes, Of<&Statistics::page_heap_returned>,
     "Free pages without physical memory: given back, or never used."},
    {"untouched", "Bytes of spans never touched", FieldGroup::kMemory, '+', Unit::kBytes,
     Of<&Statistics::untouched>,
     "Room for small blocks in spans whose pages were not touched yet."},
    {"virtual", "Virtual address space used", FieldGroup::kMemory, '=', Unit::kBytes, Virtual,
     "The sum of everything above."},

    {"spans", "Spans in use", FieldGroup::kCounts, ' ', Unit::kCount, Of<&Statistics::spans>,
     "Runs of pages with a record, free ones included."},
    {"thread_caches", "Thread heaps in use", FieldGroup::kCounts, ' ', Unit::kCount,
     Of<&Statistics::thread_caches>, "Threads that have a cache."},
    {"cpu_caches", "CPU caches in use", FieldGroup::kCounts, ' ', Unit::kCount,
     Of<&Statistics::cpu_caches>, "Caches of CPUs that were ever used."},
    {"page_size", "Tcmalloc page size", FieldGroup::kCounts, ' ', Unit::kBytes, PageSize,
     "The unit of spans; not the page of the kernel."},
    {"large_in_use", "Large blocks (bytes)", FieldGroup::kCounts, ' ', Unit::kBytes,
     Of<&Statistics::large_in_use>,
     "The part of in_use that no size class has: blocks of more than 256 KiB."},
    {"most_internal", "Internal fragmentation, at most (bytes)", FieldGroup::kCounts, ' ',
     Unit::kBytes, Of<&Statistics::most_internal>,
     "A bound on internal fragmentation, the sum of those of the size classes. What was asked for "
     "is not recorded."},

    {"allocated_bytes", "Allocated since the start (bytes)", FieldGroup::kTotals, ' ', Unit::kBytes,
     Of<&Statistics::allocated>,
     "As asked for in blocks of up to 256 KiB, whole pages in larger ones; at least in_use, which "
     "is "
     "rounded up."},
    {"allocations", "Allocations since the start (count)", FieldGroup::kTotals, ' ', Unit::kCount,
     Of<&Statistics::allocations>,
     "The same in blocks: up to 256 KiB estimated from samples, larger ones counted."},
    {"live_bytes", "", FieldGroup::kTotals, ' ', Unit::kBytes, Of<&Statistics::in_use>,
     "As in_use."},
    {"mapped_bytes", "Mapped for the heap (bytes)", FieldGroup::kTotals, ' ', Unit::kBytes,
     Of<&Statistics::mapped>, "virtual without metadata."},
    {"peak_mapped_bytes", "Mapped for the heap, at most (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::peak_mapped>, "The largest that mapped_bytes ever was."},
    {"peak_in_use", "Application's part of the peak (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::peak_in_use>,
     "What in_use was when the heap grew to its peak. That is known to within a 32nd, and to "
     "within 1 MiB in small heaps, unless a report was made then."},
    {"peak_physical", "Actual memory used at the peak (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::peak_physical>, "What physical was then."},
    {"released_bytes", "Released to the system (bytes)", FieldGroup::kTotals, ' ', Unit::kBytes,
     Of<&Statistics::released>,
     "Pages that were given back, ever: the sum of the following and of shed_by_page_heap."},
    {"released_for_program", "Of these, for the program (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::released_for_program>, "Because it asked for that."},
    {"released_in_background", "In the background (bytes)", FieldGroup::kTotals, ' ', Unit::kBytes,
     Of<&Statistics::released_in_background>,
     "By the background thread, or one that the program lends, by time and at a speed."},
    {"released_for_hard_limit", "For the hard limit (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::released_for_hard_limit>, "To keep to hard_limit."},
    {"released_by_allocator", "By allocating threads (bytes)", FieldGroup::kTotals, ' ',
     Unit::kBytes, Of<&Statistics::released_by_allocator>,
     "The rest: by time, after frees and before growth, in threads that allocate and free."},

    {"hard_limit", "Hard limit of the heap (0: none)", FieldGroup::kLimits, ' ', Unit::kBytes,
     Of<&Statistics::hard_limit>, "`TCMALLOC_HEAP_LIMIT_MB` in bytes; 0 without."},
    {"soft_limit", "Soft limit of the heap (0: none)", FieldGroup::kLimits, ' ', Unit::kBytes,
     Of<&Statistics::soft_limit>,
     "The lower one of `TCMALLOC_SOFT_LIMIT_MB` and of what the container leaves; 0 without."},
    {"hard_limit_hits", "Requests that met the hard limit (count)", FieldGroup::kLimits, ' ',
     Unit::kCount, Of<&Statistics::hard_limit_hits>,
     "Requests that it did not allow at first, whether they then succeeded or failed."},
    {"hard_limit_shrinks", "Of these, met by releasing pages (count)", FieldGroup::kLimits, ' ',
     Unit::kCount, Of<&Statistics::hard_limit_shrinks>,
     "Those that it allowed once free pages had gone back."},
    {"soft_limit_hits", "Sheds for the soft limit (count)", FieldGroup::kLimits, ' ', Unit::kCount,
     Of<&Statistics::soft_limit_hits>, "How often memory was given up for it."},
    {"soft_limit_shrinks", "Of these, that sufficed (count)", FieldGroup::kLimits, ' ',
     Unit::kCount, Of<&Statistics::soft_limit_shrinks>, "How often the heap was within it then."},
    {"pressure_hits", "Sheds under memory pressure (count)", FieldGroup::kLimits, ' ', Unit::kCount,
     Of<&Statistics::pressure_hits>, "How often memory was given up because others waited for it."},
    {"shed_by_caches", "Shed by thread and CPU caches", FieldGroup::kLimits, ' ', Unit::kBytes,
     Of<&Statistics::shed_by_caches>, "Given up by them for any limit, ever; to the page heap."},
    {"shed_by_transfer", "Shed by transfer caches", FieldGroup::kLimits, ' ', Unit::kBytes,
     Of<&Statistics::shed_by_transfer>, "Likewise."},
    {"shed_by_page_heap", "Shed by page heap", FieldGroup::kLimits, ' ', Unit::kBytes,
     Of<&Statistics::shed_by_page_heap>,
     "Given back to the system for the soft limit or under pressure, ever."},
    {"longest_pause_ns", "Longest pause for release by time (ns)", FieldGroup::kLimits, ' ',
     Unit::kNanoseconds, Of<&Statistics::longest_pause_ns>,
     "What giving memory back by time ever took from a thread that allocated."},
};
constexpr auto kFields = kWithoutMeanings<Field, kFieldRows>;
static_assert(std::ranges::is_sorted(kFields, {}, &Field::group));

constexpr SizeClassFieldRow kSizeClassFieldRows[] = {
    {"bytes", Unit::kBytes, OfClass<&SizeClassStatistics::object_bytes>, "Of one block."},
    {"spans", Unit::kCount, OfClass<&SizeClassStatistics::spans>, "Spans that hold such blocks."},
    {"span_bytes", Unit::kBytes, OfClass<&SizeClassStatistics::span_bytes>, "Their pages."},
    {"in_use", Unit::kObjects, OfClass<&SizeClassStatistics::in_use>,
     "Live: the program has them."},
    {"thread_free", Unit::kObjects, OfClass<&SizeClassStatistics::thread_free>,
     "In caches of threads."},
    {"cpu_free", Unit::kObjects, OfClass<&SizeClassStatistics::cpu_free>, "In caches of CPUs."},
    {"transfer_free", Unit::kObjects, OfClass<&SizeClassStatistics::transfer_free>,
     "In the transfer cache."},
    {"central_free", Unit::kObjects, OfClass<&SizeClassStatistics::central_free>,
     "In the central free list, with memory."},
    {"untouched", Unit::kObjects, OfClass<&SizeClassStatistics::untouched>,
     "There as well, but never touched."},
    {"external_bytes", Unit::kBytes,
     [](const SizeClassStatistics& of) { return of.external_bytes(); },
     "External fragmentation: central_free in bytes, and the ends of spans that have no room for a "
     "block. Nothing else can use it while any other block of the span is in use or in a cache."},
    {"most_internal_bytes", Unit::kBytes,
     [](const SizeClassStatistics& of) { return of.most_internal_bytes(); },
     "Internal fragmentation at most: each live block could have been asked for with the least "
     "size of the class. Blocks with a large alignment, and those that realloc left where they "
     "were, may waste more."},
};

constexpr auto kSizeClassFields = kWithoutMeanings<SizeClassField, kSizeClassFieldRows>;

}  // namespace

std::span<const Field> Fields() { return kFields; }

std::span<const SizeClassField> SizeClassFields() { return kSizeClassFields; }

std::string_view MeaningOf(const Field& field) {
  return Meanings<kFieldRows>::Of(static_cast<size_t>(&field - kFields.data()));
}

std::string_view MeaningOf(const SizeClassField& field) {
  return Meanings<kSizeClassFieldRows>::Of(static_cast<size_t>(&field - kSizeClassFields.data()));
}

const Field* FindField(std::string_view name) {
  const auto* found = std::ranges::find(kFields, name, &Field::name);
  return found != std::end(kFields) ? found : nullptr;
}

}  // namespace tcmalloc
