// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/option_table.h"

#include <algorithm>
#include <iterator>

namespace tcmalloc {
namespace {

constexpr uint64_t kKiB = uint64_t{1} << 10;
constexpr uint64_t kGiB = uint64_t{1} << 30;

constexpr std::string_view kFrontEnds[] = {"auto", "per_thread", "per_cpu"};
constexpr std::string_view kPageHeaps[] = {"auto", "classic", "huge"};

constexpr OptionRow kTable[] = {
    {"TCMALLOC_FRONT_END", FrontEndType{&Options::front_end, kFrontEnds}, "",
     "Which caches serve the threads: each thread's own, or those of the CPUs that they run on, "
     "where the kernel allows it. auto begins with the first and takes the second once there are "
     "many threads."},
    {"TCMALLOC_PAGE_HEAP", PageHeapType{&Options::page_heap, kPageHeaps}, "",
     "How runs of pages are handed out: by best fit, or packed into hugepages as far as "
     "/sys/kernel/mm/transparent_hugepage allows them. auto takes the first."},
    {"TCMALLOC_MAX_PER_CPU_CACHE_SIZE",
     CountType{&Options::max_per_cpu_cache_size, 64 * kKiB, kGiB}, "bytes",
     "The most that the cache of a CPU holds; a busy one may take up to as much again from idle "
     "ones."},
    {"TCMALLOC_RELEASE_RATE", RealType{&Options::release_rate, 0, 10}, "",
     "How eagerly unused memory goes back to the system. 0 never gives any back on its own; a "
     "larger value lowers resident memory and costs more page faults."},
    {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
     CountType{&Options::max_total_thread_cache_bytes, 512 * kKiB, kGiB}, "bytes",
     "The most that the caches of all threads hold together. More of it lets many threads "
     "allocate without sharing; less of it lowers resident memory."},
    {"TCMALLOC_TRANSFER_NUM_OBJ", CountType{&Options::transfer_num_obj, 0, 512}, "objects",
     "The most objects of one size that move between a thread's cache and the shared lists at "
     "once. 0 takes the built-in number of each size."},
    {"TCMALLOC_HEAP_LIMIT_MB", CountType{&Options::heap_limit_mb, 0, uint64_t{1} << 28}, "MiB",
     "The most memory that the heap may take from the system; an allocation beyond it fails. 0 "
     "sets no limit."},
    {"TCMALLOC_AGGRESSIVE_DECOMMIT", SwitchType{&Options::aggressive_decommit}, "",
     "Gives every free run of pages back to the system at once. Lowers resident memory, at the "
     "cost of a system call and page faults for each run."},
    {"TCMALLOC_SKIP_SBRK", SwitchType{&Options::skip_sbrk}, "",
     "Never takes memory from sbrk. Otherwise that is tried where mmap fails."},
    {"TCMALLOC_SKIP_MMAP", SwitchType{&Options::skip_mmap}, "",
     "Takes the heap from sbrk alone. The allocator's own records still come from mmap."},
    {"TCMALLOC_DISABLE_MEMORY_RELEASE", SwitchType{&Options::disable_memory_release}, "",
     "Never gives memory back to the system, not even where the program asks for it."},
    {"MALLOCSTATS", CountType{&Options::malloc_stats, 0, 2}, "",
     "1 prints statistics to stderr when the program exits; 2 adds a line for each size class."},
    {"TCMALLOC_EXIT_REPORT", PathType{&Options::exit_report}, "",
     "A file to which a short report is written when the program exits, for tools that run "
     "programs. The file is made for its owner alone."},
};

static_assert(std::size(kTable) <= kMostOptions);
static_assert(std::ranges::all_of(kTable, [](const OptionRow& row) {
  return row.variable.size() <= kLongestVariable;
}));

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }

}  // namespace tcmalloc
