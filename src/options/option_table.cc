// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/option_table.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <iterator>

namespace tcmalloc {
namespace {

constexpr std::string_view kModes[] = {"default", "hardened", "debug"};
constexpr std::string_view kFrontEnds[] = {"auto", "per_thread", "per_cpu"};
constexpr std::string_view kCgroups[] = {"auto", "off"};
constexpr std::string_view kPageHeaps[] = {"auto", "classic", "huge"};
constexpr std::string_view kProfileFormats[] = {"text", "proto"};
constexpr std::string_view kHeapChecks[] = {"off",       "minimal", "normal", "strict",
                                            "draconian", "as-is",   "local"};
constexpr std::string_view kHeapCheckMappings[] = {"reached", "all"};
constexpr std::string_view kCpuIds[] = {"auto", "mm_cid", "cpu_id"};

constexpr SizeType Mebibytes(uint64_t Options::* field) {
  return {field, 0, kMostMebibytes, SizeUnit::kMebibyte};
}

constexpr OptionRow kTable[] = {
    {"TCMALLOC_MODE", WordType{&Options::mode, kModes}, "",
     "What is checked of blocks. hardened notices nearly every wrong free and many wrong writes, "
     "at "
     "some cost; debug checks each block as the debug libraries do, and names stacks. Only "
     "libraries with profiles have them."},
    {"TCMALLOC_QUARANTINE_SIZE",
     SizeType{&Options::quarantine_size, 0, uint64_t{1} << 40, SizeUnit::kByte}, "bytes",
     "About the most that freed blocks of up to 256 KiB may hold while they wait to be used again, "
     "if eight threads free or more. Below 4 MiB the mode takes more time, because fewer blocks "
     "are "
     "used again without the allocator below. Only in hardened mode, as the next two.",
     "freed blocks are used again at once"},
    {"TCMALLOC_ZERO_ON_FREE", SwitchType{&Options::zero_on_free}, "",
     "Zeroes freed blocks as a whole, instead of filling the beginning and the end of each."},
    {"TCMALLOC_CHECK_DELETES", SwitchType{&Options::check_deletes}, "",
     "Compares family, size and alignment of a call that frees with those of the allocation. Does "
     "nothing in a program that replaces an operator new or delete by its own."},
    {"TCMALLOC_FRONT_END", WordType{&Options::front_end, kFrontEnds}, "",
     "Which caches serve the threads: each thread's own, or those of the CPUs that they run on, "
     "where the kernel allows it. auto begins with the first and takes the second once there are "
     "many threads. Programs whose children by clone share memory (CLONE_VM without CLONE_THREAD), "
     "and allocate, need per_thread."},
    {"TCMALLOC_CPU_IDS", WordType{&Options::cpu_ids, kCpuIds}, "",
     "What tells the caches of CPUs apart: mm_cid, of which the kernel gives out no more than "
     "threads run at once, or cpu_id, the number of the CPU. auto is mm_cid. Where the kernel has "
     "no mm_cid it is cpu_id in any case."},
    {"TCMALLOC_PAGE_HEAP", WordType{&Options::page_heap, kPageHeaps}, "",
     "How runs of pages are handed out: by best fit, or packed into hugepages as far as "
     "/sys/kernel/mm/transparent_hugepage allows them. auto takes the first, or the "
     "second while the leak checker is on."},
    {"TCMALLOC_MAX_PER_CPU_CACHE_SIZE",
     SizeType{&Options::max_per_cpu_cache_size, kLeastPerCpuCacheSize, kMostPerCpuCacheSize,
              SizeUnit::kByte},
     "bytes",
     "The most that the cache of a CPU holds; a busy one may take three quarters of what idle ones "
     "may hold, up to 8 times its own and 32 MiB, or twice its own. The default stands for 32 MiB "
     "by the number of CPUs that the process may use where there are fewer than 8."},
    {"TCMALLOC_RELEASE_RATE", RealType{&Options::release_rate, 0, kMostReleaseRate}, "",
     "How eagerly unused memory goes back to the system. 0 never gives any back on its own; a "
     "larger value lowers resident memory and costs more page faults.",
     "none goes back on its own"},
    {"TCMALLOC_RELEASE_HALF_LIFE", CountType{&Options::release_half_life, 0, 86'400'000},
     "milliseconds",
     "Once memory was not needed for so long, half of it goes back to the system, and half of the "
     "rest in each such time that follows. A release rate above 1 shortens it. 0 gives none back "
     "by time.",
     "none goes back by time"},
    {"TCMALLOC_BACKGROUND", SwitchType{&Options::background}, "",
     "Starts a thread that gives unused memory back while the program is idle. Otherwise that "
     "happens while the program allocates or frees."},
    {"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES",
     SizeType{&Options::max_total_thread_cache_bytes, kLeastTotalThreadCacheBytes,
              kMostTotalThreadCacheBytes, SizeUnit::kByte},
     "bytes",
     "The most that the caches of all threads hold together. More of it lets many threads "
     "allocate without sharing; less of it lowers resident memory. The default stands for 4 MiB "
     "for each CPU that the process may use where there are more than 8."},
    {"TCMALLOC_TRANSFER_NUM_OBJ", CountType{&Options::transfer_num_obj, 0, 512}, "objects",
     "The most objects of one size that move between a thread's cache and the shared lists at "
     "once. 0 takes the built-in number of each size.",
     "the built-in numbers"},
    {"TCMALLOC_HEAP_LIMIT_MB", Mebibytes(&Options::heap_limit_mb), "MiB",
     "The most memory that the heap may have resident, caches included. An allocation beyond it "
     "fails once everything that can be given back was. 0 sets no limit.",
     "no limit"},
    {"TCMALLOC_SOFT_LIMIT_MB", Mebibytes(&Options::soft_limit_mb), "MiB",
     "Where the heap has more than this resident, caches included, it gives back what it can "
     "before it grows; nothing fails. 0 leaves it to the container's limits alone; of both, the "
     "lower one counts.",
     "the container's limits alone"},
    {"TCMALLOC_CGROUP", WordType{&Options::cgroup, kCgroups}, "",
     "auto follows the memory limits, the CPU quota and the memory pressure of the process's "
     "control groups, versions 1 and 2, as they change; off never looks at them."},
    {"TCMALLOC_CGROUP_ROOT", PathType{&Options::cgroup_root, 0}, "",
     "A directory in which proc/self/cgroup, proc/self/mountinfo, proc/self/statm and the "
     "directories where control groups are mounted are looked for instead of in /. For tests."},
    {"TCMALLOC_AGGRESSIVE_DECOMMIT", SwitchType{&Options::aggressive_decommit}, "",
     "Gives every free run of pages back to the system at once. Lowers resident memory, at the "
     "cost of a system call and page faults for each run."},
    {"TCMALLOC_SKIP_SBRK", SwitchType{&Options::skip_sbrk}, "",
     "Never takes memory from sbrk. Otherwise that is tried where mmap fails."},
    {"TCMALLOC_SKIP_MMAP", SwitchType{&Options::skip_mmap}, "",
     "Takes the heap from sbrk alone. The allocator's own records still come from mmap."},
    {"TCMALLOC_DISABLE_MEMORY_RELEASE", SwitchType{&Options::disable_memory_release}, "",
     "Never gives memory back to the system, not even where the program asks for it."},
    {"TCMALLOC_DEVMEM_START", Mebibytes(&Options::devmem_start), "MiB",
     "Where in the device of physical memory the heap may begin; memory is taken upwards from "
     "there before any other is asked for. 0 leaves the device alone.",
     "no device"},
    {"TCMALLOC_DEVMEM_LIMIT", Mebibytes(&Options::devmem_limit), "MiB",
     "Where in that device the heap must end. 0 sets no limit.", "no limit"},
    {"TCMALLOC_DEVMEM_DEVICE", PathType{&Options::devmem_device, 1}, "",
     "That device, if it is not /dev/mem."},
    {"TCMALLOC_MEMFS_MALLOC_PATH", PathType{&Options::memfs_malloc_path, 2}, "",
     "The beginning of a file name in a mounted hugetlbfs or tmpfs. The heap is taken from a file "
     "that is made there and unlinked at once, and other memory only where that fails."},
    {"TCMALLOC_MEMFS_LIMIT_MB", Mebibytes(&Options::memfs_limit_mb), "MiB",
     "The most that is taken from that file. 0 sets no limit.", "no limit"},
    {"TCMALLOC_MEMFS_ABORT_ON_FAIL", SwitchType{&Options::memfs_abort_on_fail}, "",
     "Aborts the program where that file cannot serve a request, instead of taking other memory."},
    {"TCMALLOC_MEMFS_IGNORE_MMAP_FAIL", SwitchType{&Options::memfs_ignore_mmap_fail}, "",
     "Goes on asking that file for memory after a mapping of it failed. Otherwise the first "
     "failure is the last."},
    {"TCMALLOC_MEMFS_MAP_PRIVATE", SwitchType{&Options::memfs_map_private}, "",
     "Maps that file privately, so that a forked child has its own copy of the heap. Otherwise "
     "parent and child write to the same memory."},
    {"TCMALLOC_MEMFS_DISABLE_FALLBACK", SwitchType{&Options::memfs_disable_fallback}, "",
     "Takes memory from that file alone: an allocation that it cannot serve fails. Does nothing "
     "where the file could not be made."},
    {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD",
     SignedSizeType{&Options::large_alloc_report_threshold, -1, kMostBlockBytes}, "bytes",
     "A block of at least this size is reported on stderr. Each report raises the size by an "
     "eighth. 0 and -1 report none, and blocks of up to 256 KiB are never reported. Only for "
     "programs in which descriptor 2 is stderr.",
     "no reports"},
    {"TCMALLOC_SAMPLE_PARAMETER",
     SizeType{&Options::sample_parameter, 0, uint64_t{1} << 40, SizeUnit::kByte}, "bytes",
     "Allocations are sampled for profiles, one in so many bytes on average. The default is up to "
     "32 times as much while samples would come faster than ten in a millisecond; any other value "
     "stays as it is. 0 takes no samples. Only libraries with profiles take any.",
     "no samples"},
    {"TCMALLOC_MAX_SAMPLES", CountType{&Options::max_samples, 0, uint64_t{1} << 28}, "samples",
     "The most samples of blocks in use that are kept, and the most of a profile of allocations or "
     "lifetimes; further ones are counted and left out, and profiles tell how many. 0 sets no "
     "limit.",
     "no limit"},
    {"TCMALLOC_GUARDED_SAMPLE_PARAMETER",
     SignedSizeType{&Options::guarded_sample_parameter, -1, uint64_t{1} << 40}, "bytes",
     "Of the samples, one in so many allocated bytes on average lies between guard pages, so that "
     "a "
     "use beyond its end or after its free is reported with stacks. 0 guards every sample of up to "
     "a page, -1 none. 104857600 costs nothing that can be measured. Only libraries with profiles "
     "guard any.",
     "no guarded blocks"},
    {"TCMALLOC_GUARDED_SLOTS", CountType{&Options::guarded_slots, 16, 1024}, "blocks",
     "The most guarded blocks at a time. Each takes a page, two mappings and about 600 bytes; a "
     "place that becomes free is taken again when all others have been."},
    {"TCMALLOC_HEAP_PROFILE", PathType{&Options::heap_profile, 4}, "",
     "A file to which a profile is written when the program exits, from samples; a library without "
     "profiles writes none. In its name %p stands for the number of the process, %t for the time "
     "in "
     "seconds since 1970, %n for a number that counts the files of the process, %k for the type "
     "and %% for one %. A child of fork writes a profile only if the name has %p."},
    {"TCMALLOC_PROFILE_TYPE", SetType{&Options::profile_types, kProfileTypes}, "",
     "What that profile is about: the blocks in use, those in use when the heap was largest, where "
     "the heap grew, all blocks that were allocated, how long they lived, or who keeps spans with "
     "free bytes alive. Each of several has a file of its own, named by %k or else by its type "
     "before .pb.gz or at the end. The last two are always proto."},
    {"TCMALLOC_HEAP_PROFILE_SIGNAL", CountType{&Options::heap_profile_signal, 0, 64}, "",
     "The number of a signal upon which the background thread, which this starts, writes a "
     "profile of the blocks in use. Its name is that of TCMALLOC_HEAP_PROFILE, or "
     "tcmalloc.%p.%n.pb.gz without one; a name without %n or %t gets a number before .pb.gz or at "
     "the end. A handler of the program's own stays. 0 leaves all signals alone.",
     "no signal"},
    {"TCMALLOC_PROFILE_FORMAT", WordType{&Options::profile_format, kProfileFormats}, "",
     "The format of profiles: the text of gperftools, or proto, the compressed profile.proto of "
     "pprof. A name that ends in .pb.gz chooses proto in any case."},
    {"HEAPCHECK", WordType{&Options::heap_check, kHeapChecks}, "",
     "Looks for leaks: blocks that no pointer leads to. normal checks when the program exits, "
     "before its global destructors; minimal does not report what was allocated before main; "
     "strict checks after the destructors; draconian then reports every block that was not freed; "
     "as-is does what the next three variables say; local only lets the program check by itself. "
     "Every allocation is recorded, which costs time. Only libraries with profiles check."},
    {"HEAP_CHECK_AFTER_DESTRUCTORS", SwitchType{&Options::heap_check_after_destructors}, "",
     "With as-is: checks after global destructors instead of before."},
    {"HEAP_CHECK_IGNORE_GLOBAL_LIVE", SwitchType{&Options::heap_check_ignore_global_live}, "",
     "With as-is: what can be reached from global variables is no leak."},
    {"HEAP_CHECK_IGNORE_THREAD_LIVE", SwitchType{&Options::heap_check_ignore_thread_live}, "",
     "With as-is: what can be reached from stacks, registers and variables of threads is no leak."},
    {"HEAP_CHECK_IDENTIFY_LEAKS", SwitchType{&Options::heap_check_identify_leaks}, "",
     "Prints the addresses of leaked blocks as well."},
    {"HEAP_CHECK_TEST_POINTER_ALIGNMENT", SwitchType{&Options::heap_check_test_pointer_alignment},
     "",
     "Where leaks are found, tells if they are also found with pointers at any address, and with "
     "pointers to any byte of a block."},
    {"HEAP_CHECK_POINTER_SOURCE_ALIGNMENT",
     CountType{&Options::heap_check_pointer_source_alignment, 1, 4096, true}, "bytes",
     "Pointers are looked for at addresses that are multiples of this power of two."},
    {"HEAP_CHECK_MAX_POINTER_OFFSET",
     SignedSizeType{&Options::heap_check_max_pointer_offset, -1, kMostBlockBytes}, "bytes",
     "A pointer into a block leads to it if it is at most so far from the block's beginning. -1 "
     "sets no limit.",
     "no limit"},
    {"HEAP_CHECK_MAX_LEAKS", CountType{&Options::heap_check_max_leaks, 0, uint64_t{1} << 20},
     "stacks", "The most stacks that a report prints; the files have all of them. 0 sets no limit.",
     "no limit"},
    {"HEAP_CHECK_DUMP_DIRECTORY", PathType{&Options::heap_check_dump_directory, 6}, "",
     "The directory, if it is not /tmp, to which profiles of leaked blocks are written."},
    {"TCMALLOC_HEAP_CHECK_SUPPRESSIONS", PathType{&Options::heap_check_suppressions, 7}, "",
     "A file with a line leak:PATTERN for each function, file or library whose blocks shall not be "
     "reported, as LeakSanitizer reads it."},
    {"TCMALLOC_HEAP_CHECK_EXIT_CODE", CountType{&Options::heap_check_exit_code, 0, 255}, "",
     "The status with which a program exits that has leaks. 0 leaves it alone.",
     "the program's own status"},
    {"TCMALLOC_HEAP_CHECK_MAPPINGS", WordType{&Options::heap_check_mappings, kHeapCheckMappings},
     "",
     "Which of the program's own mappings the leak checker searches for pointers: those that a "
     "pointer leads to, or all."},
    {"TCMALLOC_HEAP_CHECK_REPORT", SwitchType{&Options::heap_check_report}, "",
     "Prints the result of a check on stderr. Without it, the files are written even where nothing "
     "is leaked."},
    {"HEAPPROFILE", PathType{&Options::heap_profiler_prefix, 5}, "",
     "Records every block from the start on, and writes the files PREFIX.0001.heap, "
     "PREFIX.0002.heap "
     "and so on, at the intervals below and when the program exits. The value is the prefix. With "
     "PMIX_RANK, SLURM_PROCID or PMI_RANK, as launchers of parallel programs set them, the rank is "
     "added to it, and under Open MPI the number of the process. Only libraries with profiles do "
     "so."},
    {"HEAP_PROFILE_ALLOCATION_INTERVAL",
     SizeType{&Options::heap_profiler_allocation_interval, 0, kMostProfileInterval,
              SizeUnit::kByte},
     "bytes", "The heap profiler writes a file each time so many bytes were allocated.",
     "no such files"},
    {"HEAP_PROFILE_DEALLOCATION_INTERVAL",
     SizeType{&Options::heap_profiler_deallocation_interval, 0, kMostProfileInterval,
              SizeUnit::kByte},
     "bytes", "The heap profiler writes a file each time so many bytes were freed.",
     "no such files"},
    {"HEAP_PROFILE_INUSE_INTERVAL",
     SizeType{&Options::heap_profiler_inuse_interval, 0, kMostProfileInterval, SizeUnit::kByte},
     "bytes",
     "The heap profiler writes a file each time so many bytes more are in use than in any file "
     "before.",
     "no such files"},
    {"HEAP_PROFILE_TIME_INTERVAL",
     CountType{&Options::heap_profiler_time_interval, 0, uint64_t{1} << 31}, "seconds",
     "The heap profiler writes a file when something is allocated or freed so many seconds after "
     "the last one.",
     "no such files"},
    {"HEAPPROFILESIGNAL", CountType{&Options::heap_profiler_signal, 0, 64}, "",
     "The number of a signal at which the heap profiler that HEAPPROFILE started writes a file.",
     "no signal"},
    {"HEAP_PROFILE_CLEANUP", SwitchType{&Options::heap_profiler_cleanup}, "",
     "Removes the files PREFIX.*.heap of earlier runs when HEAPPROFILE starts the heap profiler."},
    {"HEAPPROFILE_USE_PID", SwitchType{&Options::heap_profiler_use_pid}, "",
     "Adds _ and the number of the process to the prefix. The heap profiler sets it for programs "
     "that this one starts."},
    {"HEAP_PROFILE_MMAP", SwitchType{&Options::heap_profiler_mmap}, "",
     "The heap profiler records mmap, mremap and sbrk of the program as well."},
    {"HEAP_PROFILE_ONLY_MMAP", SwitchType{&Options::heap_profiler_only_mmap}, "",
     "The heap profiler records mmap, mremap and sbrk of the program, and no blocks."},
    {"HEAP_PROFILE_MMAP_LOG", SwitchType{&Options::heap_profiler_mmap_log}, "",
     "While the heap profiler runs, prints each call of mmap, munmap, mremap and sbrk on stderr."},
    {"TCMALLOC_STACKTRACE_METHOD", WordType{&Options::stacktrace_method, kStackTraceMethods}, "",
     "How call stacks are walked: by unwind tables, by frame pointers, or by libunwind if it is in "
     "the process. The others are names of gperftools: generic and libgcc are tables here, "
     "generic_fp and generic_fp_unsafe are frame_pointers. Only libraries with profiles walk any."},
    {"TCMALLOC_STACKTRACE_METHOD_VERBOSE", SwitchType{&Options::stacktrace_method_verbose}, "",
     "Prints on stderr which of these methods there are, and which one is used."},
    {"TCMALLOC_TRACE", SwitchType{&Options::trace}, "",
     "Logs every allocation and free, with stacks. Only in debug mode and the debug libraries, as "
     "all below up to TCMALLOC_CHECK_INTERVAL."},
    {"TCMALLOC_TRACE_FILE", PathType{&Options::trace_file, 8}, "",
     "The file of that log, a regular one of this user, if it is not /tmp/google.alloc."},
    {"TCMALLOC_PAGE_FENCE", SwitchType{&Options::page_fence}, "",
     "Gives each block pages of its own, before a page without access, so that an overrun faults. "
     "Blocks for which the kernel has no mapping left are fenced as others are."},
    {"TCMALLOC_PAGE_FENCE_NEVER_RECLAIM", SwitchType{&Options::page_fence_never_reclaim}, "",
     "Keeps the pages of such blocks without access for ever once they are freed."},
    {"TCMALLOC_PAGE_FENCE_READABLE", SwitchType{&Options::page_fence_readable}, "",
     "Lets programs read the pages behind such blocks, and those of freed ones."},
    {"TCMALLOC_RECLAIM_MEMORY", SwitchType{&Options::reclaim_memory}, "",
     "Uses the memory of freed blocks again. Otherwise no address is ever handed out twice."},
    {"TCMALLOC_MAX_FREE_QUEUE_SIZE",
     SizeType{&Options::max_free_queue_size, 0, kMostMebibytes << 20, SizeUnit::kByte}, "bytes",
     "The most that freed blocks may hold while they wait. Those that have waited may hold as much "
     "again until their memory is used again, when writes after the free show.",
     "freed blocks are used again at once"},
    {"TCMALLOC_SYMBOLIZE_STACKTRACE", SwitchType{&Options::symbolize_stacktrace}, "",
     "Names the functions in reports of mistakes."},
    {"TCMALLOC_CHECK_INTERVAL", CountType{&Options::check_interval, 0, uint64_t{1} << 40},
     "allocations",
     "Checks all blocks each time that the program has allocated so many. 0 checks blocks when "
     "they "
     "are freed, and at exit.",
     "blocks are checked when they are freed"},
    {"MALLOCSTATS", CountType{&Options::malloc_stats, 0, 2}, "",
     "1 prints statistics to stderr when the program exits; 2 adds lines for each size class and "
     "for free runs of pages.",
     "no statistics"},
    {"TCMALLOC_EXIT_CHECK", SwitchType{&Options::exit_check}, "",
     "Looks at the free objects nearest at hand when the program exits, and ends it with a message "
     "if it wrote to one of them."},
    {"TCMALLOC_EXIT_REPORT", PathType{&Options::exit_report, 3}, "",
     "A file, which must exist, to which a short report is appended when the program exits, for "
     "tools that run programs."},
    {"TCMALLOC_CRASH_REPORT", PathType{&Options::crash_report, 9}, "",
     "The beginning of the name of a file, completed by a dot and the number of the process, to "
     "which the message about a mistake is appended. Only its first line then goes to stderr as "
     "well. tcm debug and tcm harden use it."},
};

constexpr IgnoredVariable kIgnored[] = {
    {"TCMALLOC_OVERRIDE_PAGESIZE",
     "Pretends that the pages of the kernel are larger, for tests of gperftools. Here they are "
     "what the kernel says."},
    {"TCMALLOC_ENABLE_SIZED_DELETE",
     "The size that a program hands to delete is never relied upon: the class of a small block is "
     "one load away, and a wrong size would do harm."},
    {"HEAP_CHECK_RUN_UNDER_GDB", "The leak checker works under a debugger in any case."},
    {"PPROF_PATH",
     "Names come from the symbol tables of the mapped files, and no tool is started."},
    {"PERFTOOLS_VERBOSE", "There are no messages that could be asked for."},
    {"TCMALLOC_DISABLE_REPLACEMENT", "Of Windows."},
    {"RUNNING_ON_VALGRIND", "Nothing is done otherwise there."},
};

constexpr MissingTool kMissingTools[] = {
    {"HEAPPROFILE", "heap profiler"},
    {"HEAPCHECK", "heap checker"},
    {"CPUPROFILE", "CPU profiler"},
};

// How many of the first letters of a variable are looked at first.
constexpr size_t kStartLetters = 4;

constexpr uint32_t StartOf(std::string_view variable) {
  uint32_t start = 0;
  for (const char letter : variable.substr(0, kStartLetters)) {
    start = start << 8 | static_cast<unsigned char>(letter);
  }
  return start;
}

// The starts of all variables that are looked for, each once.
consteval auto AllStarts() {
  constexpr size_t kMostStarts = 4;
  std::array<uint32_t, kMostStarts> starts{};
  size_t count = 0;
  const auto add = [&](std::string_view variable) {
    const uint32_t start = StartOf(variable);
    if (std::ranges::find(starts, start) == starts.end()) starts[count++] = start;
  };
  for (const OptionRow& row : kTable) add(row.variable);
  for (const MissingTool& missing : kMissingTools) add(missing.variable);
  return starts;
}
constexpr auto kStarts = AllStarts();

// Gives each path a place of its own.
consteval uint32_t PathIndexes() {
  uint32_t indexes = 0;
  for (const OptionRow& row : kTable) {
    if (const auto* path = std::get_if<PathType>(&row.type)) indexes += uint32_t{1} << path->index;
  }
  return indexes;
}

static_assert(std::size(kTable) <= kMostOptions);
static_assert(PathIndexes() == (uint32_t{1} << kPathOptions) - 1);
static_assert(std::ranges::all_of(kTable, [](const OptionRow& row) {
  return row.variable.size() <= kLongestVariable;
}));

}  // namespace

std::span<const OptionRow> OptionTable() { return kTable; }
std::span<const IgnoredVariable> IgnoredVariables() { return kIgnored; }
std::span<const MissingTool> MissingTools() { return kMissingTools; }

bool MayBeOption(std::string_view variable) {
  return std::ranges::find(kStarts, StartOf(variable)) != kStarts.end();
}

}  // namespace tcmalloc
