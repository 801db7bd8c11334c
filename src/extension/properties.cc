// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "extension/properties.h"

#include <algorithm>
#include <cstddef>

#include "heap/heap.h"
#include "heap/observer.h"
#include "report/current_statistics.h"
#include "report/documented_rows.h"
#include "report/fields.h"

namespace tcmalloc {
namespace {

template <auto figure>
uint64_t Now(Moment& moment) {
  return (moment.statistics().*figure)();
}

template <uint64_t Statistics::* figure>
uint64_t NowField(Moment& moment) {
  return moment.statistics().*figure;
}

template <uint64_t PageHeapEvents::* figure>
uint64_t Pages(Moment& moment) {
  return moment.pages().*figure;
}

uint64_t Committed(Moment& moment) { return moment.pages().committed().bytes(); }

uint64_t Reserved(Moment& moment) { return moment.pages().system.bytes(); }

uint64_t Released(Moment& moment) { return moment.pages().released().bytes(); }

template <ReleaseCause cause>
uint64_t ReleasedFor(Moment& moment) {
  return moment.pages().released(cause).bytes();
}

// Returns the bytes that were ever committed: the present ones and all that were released.
uint64_t EverCommitted(Moment& moment) {
  const PageHeapStats& pages = moment.pages();
  return (pages.committed() + pages.released()).bytes();
}

uint64_t PageHeapFree(Moment& moment) {
  const PageHeapStats& pages = moment.pages();
  return (pages.free + pages.in_transit).bytes();
}

uint64_t PageHeapReturned(Moment& moment) { return moment.pages().returned.bytes(); }

uint64_t Slack(Moment& moment) { return PageHeapFree(moment) + PageHeapReturned(moment); }

uint64_t FrontEndBytes(Moment& moment) {
  const Statistics& now = moment.statistics();
  return now.thread_free + now.cpu_free;
}

// Returns what is left of the heap's committed pages beside the blocks of the program, the caches
// and the free pages. As in gperftools, that includes the parts of spans that were never touched.
uint64_t CentralFree(Moment& moment) {
  const Statistics& now = moment.statistics();
  return now.central_free + now.untouched;
}

uint64_t ThreadCacheCount(Moment&) { return heap.caches().count(); }

uint64_t Metadata(Moment& moment) { return moment.statistics().metadata; }

uint64_t VirtualMemory(Moment& moment) { return Reserved(moment) + Metadata(moment); }

// Returns the memory beyond the requests of the program.
uint64_t Overhead(Moment& moment) {
  const Statistics& now = moment.statistics();
  return now.page_heap_free + now.central_free + now.transfer_free + now.thread_free +
         now.cpu_free + now.metadata;
}

uint64_t Required(Moment& moment) {
  const Statistics& now = moment.statistics();
  return now.physical() - now.page_heap_free;
}

uint64_t PerCpuActive(Moment&) { return heap.front_end().wanted() == FrontEnd::kPerCpu ? 1 : 0; }

uint64_t AggressiveDecommit(Moment&) { return heap.page_heap().aggressive_decommit() ? 1 : 0; }
void SetAggressiveDecommit(uint64_t on) { heap.page_heap().set_aggressive_decommit(on != 0); }

// Rounds up, because 0 means that there is no limit.
uint64_t HeapLimitMb(Moment&) {
  const uint64_t bytes = heap.hard_limit();
  return (bytes >> 20) + (bytes % (1 << 20) != 0 ? 1 : 0);
}
void SetHeapLimitMb(uint64_t mebibytes) {
  heap.SetHardLimit(std::min(mebibytes, kMostMebibytes) << 20);
}

uint64_t MaxTotalThreadCacheBytes(Moment&) { return heap.budget().total(); }
void SetMaxTotalThreadCacheBytes(uint64_t bytes) { heap.SetMaxTotalThreadCacheBytes(bytes); }

uint64_t MinPerThreadCacheBytes(Moment&) { return heap.budget().first_share(); }
void SetMinPerThreadCacheBytes(uint64_t bytes) { heap.SetMinPerThreadCacheBytes(bytes); }

uint64_t NoneIsMost(uint64_t limit) { return limit == 0 ? UINT64_MAX : limit; }
uint64_t HardLimit(Moment&) { return NoneIsMost(heap.hard_limit()); }
uint64_t SoftLimit(Moment&) { return NoneIsMost(heap.limits().stats().soft_limit); }
uint64_t SoftLimitHits(Moment&) { return heap.limits().stats().soft_hits; }
uint64_t SoftLimitShrinks(Moment&) { return heap.limits().stats().soft_shrinks; }

// Returns a percentage of the memory that the program had.
uint64_t FragmentationAtPeak(Moment& moment) {
  const Statistics& now = moment.statistics();
  if (now.peak_in_use == 0) return 0;
  return 100 * (now.peak_physical - std::min(now.peak_physical, now.peak_in_use)) / now.peak_in_use;
}

uint64_t SampleParameter(Moment&) { return heap.sample_period(); }

uint64_t None(Moment&) { return 0; }
constexpr std::string_view kNoExperiment = "0: google/tcmalloc's experiments are not made here.";

struct PropertyRow {
  std::string_view name;
  uint64_t (*get)(Moment& moment);
  void (*set)(uint64_t value);
  std::string_view meaning;

  constexpr operator Property() const { return {name, get, set}; }
};

constexpr PropertyRow kRows[] = {
    // Properties of both families.
    {"generic.current_allocated_bytes", NowField<&Statistics::in_use>, nullptr,
     "Bytes in use by the program, rounded up to the sizes of blocks."},
    {"generic.heap_size", Committed, nullptr,
     "Bytes of the heap that may have physical memory: all but what was given back or never used."},
    {"tcmalloc.slack_bytes", Slack, nullptr,
     "Bytes of free pages, with physical memory or without."},
    {"tcmalloc.pageheap_free_bytes", PageHeapFree, nullptr,
     "Bytes of free pages that may have physical memory."},
    {"tcmalloc.pageheap_unmapped_bytes", PageHeapReturned, nullptr,
     "Bytes of free pages without physical memory."},
    {"tcmalloc.max_total_thread_cache_bytes", MaxTotalThreadCacheBytes, SetMaxTotalThreadCacheBytes,
     "The most bytes that the caches of all threads may hold, as "
     "`TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES`; less while a limit of the heap calls for it."},
    {"tcmalloc.current_total_thread_cache_bytes", FrontEndBytes, nullptr,
     "Bytes in the caches of threads and of CPUs."},
    // Properties of gperftools.
    {"generic.total_physical_bytes", Now<&Statistics::physical>, nullptr,
     "Bytes that the heap and the allocator's records may have in physical memory or swap."},
    {"tcmalloc.central_cache_free_bytes", CentralFree, nullptr,
     "Bytes in central free lists, touched or not, and what spans of small blocks cannot use. With "
     "those of the program, of transfer caches, of thread caches and of `pageheap_free_bytes`: "
     "`generic.heap_size`."},
    {"tcmalloc.transfer_cache_free_bytes", NowField<&Statistics::transfer_free>, nullptr,
     "Bytes in transfer caches."},
    {"tcmalloc.thread_cache_free_bytes", FrontEndBytes, nullptr,
     "Bytes in the caches of threads and of CPUs."},
    {"tcmalloc.pageheap_committed_bytes", Committed, nullptr, "As `generic.heap_size`."},
    {"tcmalloc.pageheap_commit_count", Pages<&PageHeapEvents::commits>, nullptr,
     "Count: how often pages without physical memory came into use."},
    {"tcmalloc.pageheap_total_commit_bytes", EverCommitted, nullptr,
     "Bytes of all such pages since the start."},
    {"tcmalloc.pageheap_decommit_count", Pages<&PageHeapEvents::releases>, nullptr,
     "Count: how many runs of pages were given back to the system."},
    {"tcmalloc.pageheap_total_decommit_bytes", Released, nullptr,
     "Bytes of all such runs since the start."},
    {"tcmalloc.pageheap_scavenge_count", Pages<&PageHeapEvents::releases>, nullptr,
     "As `tcmalloc.pageheap_decommit_count`."},
    {"tcmalloc.pageheap_reserve_count", Pages<&PageHeapEvents::growths>, nullptr,
     "Count: how often the heap got addresses from the system."},
    {"tcmalloc.pageheap_total_reserve_bytes", Reserved, nullptr,
     "Bytes of all such addresses since the start."},
    {"tcmalloc.min_per_thread_cache_bytes", MinPerThreadCacheBytes, SetMinPerThreadCacheBytes,
     "Bytes that the cache of a new thread may hold at first, and that other threads leave to it; "
     "at least 4096 and at most the total of all threads, which can be set as low as that."},
    {"tcmalloc.aggressive_memory_decommit", AggressiveDecommit, SetAggressiveDecommit,
     "1 if every free run of pages goes back to the system at once, as "
     "`TCMALLOC_AGGRESSIVE_DECOMMIT`, otherwise 0. Any other value sets it to 1."},
    {"tcmalloc.heap_limit_mb", HeapLimitMb, SetHeapLimitMb,
     "MiB that the heap may have in physical memory, as `TCMALLOC_HEAP_LIMIT_MB`; 0 sets no "
     "limit."},
    {"tcmalloc.sample_parameter", SampleParameter, SetSamplePeriod,
     "Mean bytes between two samples, as `TCMALLOC_SAMPLE_PARAMETER`; 0 takes none. Always 0 in a "
     "library without profiles."},
    {"tcmalloc.impl.thread_cache_count", ThreadCacheCount, nullptr, "Count: caches of threads."},
    // Properties of google/tcmalloc.
    {"generic.bytes_in_use_by_app", NowField<&Statistics::in_use>, nullptr,
     "As `generic.current_allocated_bytes`."},
    {"generic.virtual_memory_used", VirtualMemory, nullptr,
     "Bytes of addresses of the heap and of the allocator's records."},
    {"generic.physical_memory_used", Now<&Statistics::physical>, nullptr,
     "As `generic.total_physical_bytes`."},
    {"generic.peak_memory_usage", NowField<&Statistics::peak_in_use>, nullptr,
     "Bytes in use by the program when the heap grew to its peak. That is known to within a "
     "32nd, and to within 1 MiB in small heaps, unless statistics were read then."},
    {"generic.realized_fragmentation", FragmentationAtPeak, nullptr,
     "Percent: what the heap and the allocator's records held beyond that then, relative to it."},
    {"tcmalloc.per_cpu_caches_active", PerCpuActive, nullptr,
     "1 if threads are served by the caches of CPUs, 0 if by their own."},
    {"tcmalloc.central_cache_free", CentralFree, nullptr,
     "As `tcmalloc.central_cache_free_bytes`."},
    {"tcmalloc.transfer_cache_free", NowField<&Statistics::transfer_free>, nullptr,
     "As `tcmalloc.transfer_cache_free_bytes`."},
    {"tcmalloc.thread_cache_free", NowField<&Statistics::thread_free>, nullptr,
     "Bytes in the caches of threads alone."},
    {"tcmalloc.cpu_free", NowField<&Statistics::cpu_free>, nullptr,
     "Bytes in the caches of CPUs alone."},
    {"tcmalloc.local_bytes", FrontEndBytes, nullptr,
     "As `tcmalloc.current_total_thread_cache_bytes`."},
    {"tcmalloc.page_heap_free", PageHeapFree, nullptr, "As `tcmalloc.pageheap_free_bytes`."},
    {"tcmalloc.page_heap_unmapped", PageHeapReturned, nullptr,
     "As `tcmalloc.pageheap_unmapped_bytes`."},
    {"tcmalloc.metadata_bytes", Metadata, nullptr, "Bytes of the allocator's own records."},
    {"tcmalloc.thread_cache_count", ThreadCacheCount, nullptr,
     "As `tcmalloc.impl.thread_cache_count`."},
    {"tcmalloc.external_fragmentation_bytes", Overhead, nullptr,
     "Bytes in free pages that may have physical memory, in free lists and caches, and of the "
     "allocator's records."},
    {"tcmalloc.required_bytes", Required, nullptr,
     "Bytes that would stay in physical memory if all free pages were given back."},
    {"tcmalloc.hard_usage_limit_bytes", HardLimit, nullptr,
     "`tcmalloc.heap_limit_mb` in bytes; without a limit the largest number."},
    {"tcmalloc.desired_usage_limit_bytes", SoftLimit, nullptr,
     "The soft limit in bytes that options and control groups set; without one the largest "
     "number."},
    {"tcmalloc.hard_limit_hits", Pages<&PageHeapEvents::limit_hits>, nullptr,
     "Count: requests that the hard limit did not allow at first."},
    {"tcmalloc.successful_shrinks_after_hard_limit_hit", Pages<&PageHeapEvents::limit_shrinks>,
     nullptr, "Count: of these, how often the limit allowed them once free pages had gone back."},
    {"tcmalloc.soft_limit_hits", SoftLimitHits, nullptr,
     "Count: how often memory was given back because of the soft limit."},
    {"tcmalloc.successful_shrinks_after_soft_limit_hit", SoftLimitShrinks, nullptr,
     "Count: of these, how often the heap was within the limit then."},
    {"tcmalloc.num_released_total_bytes", Released, nullptr,
     "As `tcmalloc.pageheap_total_decommit_bytes`."},
    {"tcmalloc.num_released_release_memory_to_system_bytes", ReleasedFor<ReleaseCause::kProgram>,
     nullptr,
     "Bytes of those that the program asked for: `ReleaseMemoryToSystem`, `ReleaseFreeMemory`, "
     "`ReleaseToSystem`, `malloc_trim`."},
    {"tcmalloc.num_released_process_background_actions_bytes",
     ReleasedFor<ReleaseCause::kBackground>, nullptr,
     "Bytes of those that the background thread gave back, or one that runs "
     "`ProcessBackgroundActions`."},
    {"tcmalloc.num_released_soft_limit_exceeded_bytes", ReleasedFor<ReleaseCause::kSoftLimit>,
     nullptr, "Bytes of those that the soft limit and memory pressure caused."},
    {"tcmalloc.num_released_hard_limit_exceeded_bytes", ReleasedFor<ReleaseCause::kHardLimit>,
     nullptr,
     "Bytes of those that the hard limit caused. What these four leave of the total is "
     "`tcmalloc.statistics.released_by_allocator`."},
    {"tcmalloc.sharded_transfer_cache_free", None, nullptr,
     "0: transfer caches are not divided among groups of CPUs."},
    {"tcmalloc.security_partitioning_active", None, nullptr,
     "0: blocks are not divided by the types of what they hold."},
    {"tcmalloc.experiment.TCMALLOC_HUGE_REGION_ADAPTIVE_RELEASE", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TCMALLOC_PER_CPU_CACHE_SIZE_1MB", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TCMALLOC_PGHO_EXPERIMENT", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TCMALLOC_REUSE_SIZE_CLASSES_ABLATION", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TCMALLOC_SONIC_MADV_NOHUGEPAGE_REGIONS", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_L3_AWARE", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_MM_VCPU", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_TCMALLOC_HEAP_PARTITIONING", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_TCMALLOC_POW2_SIZECLASS", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_TCMALLOC_RELEASE_STALE_PAGES", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_TCMALLOC_SHARDED_TRANSFER_CACHE", None, nullptr, kNoExperiment},
    {"tcmalloc.experiment.TEST_ONLY_TCMALLOC_SUBRELEASE_UNBACKED_PAGES", None, nullptr,
     kNoExperiment},
};

constexpr auto kProperties = kWithoutMeanings<Property, kRows>;

}  // namespace

std::span<const Property> Properties() { return kProperties; }

std::string_view MeaningOf(const Property& property) {
  return Meanings<kRows>::Of(static_cast<size_t>(&property - kProperties.data()));
}

const Property* FindProperty(std::string_view name) {
  const auto* found = std::ranges::find(kProperties, name, &Property::name);
  return found != std::end(kProperties) ? found : nullptr;
}

bool GetProperty(std::string_view name, uint64_t* value) {
  if (const Property* property = FindProperty(name)) {
    Moment moment;
    *value = property->get(moment);
    return true;
  }
  if (!name.starts_with(kFieldPrefix)) return false;
  name.remove_prefix(kFieldPrefix.size());
  const Field* field = FindField(name);
  if (field == nullptr) return false;
  *value = field->value(CurrentStatistics());
  return true;
}

bool SetProperty(std::string_view name, uint64_t value) {
  const Property* property = FindProperty(name);
  if (property == nullptr || property->set == nullptr) return false;
  property->set(value);
  return true;
}

}  // namespace tcmalloc
