// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Options that the environment can set.

#ifndef TCMALLOC_OPTIONS_OPTIONS_H_
#define TCMALLOC_OPTIONS_OPTIONS_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The mean number of bytes between two samples unless the program or its environment sets one.
inline constexpr uint64_t kDefaultSamplePeriod = uint64_t{2} << 20;

// A path with its terminating zero byte, of less than kPathCapacity bytes in all.
inline constexpr size_t kPathCapacity = 4096;
struct PathOption {
  const char* text = "";

  bool empty() const { return text[0] == '\0'; }
};

// The caches that serve the threads.
enum class FrontEndOption : uint8_t { kAuto, kPerThread, kPerCpu };

// Decides if the limits of control groups are followed.
enum class CgroupOption : uint8_t { kAuto, kOff };

// The kernel's number by which caches of CPUs are told apart.
enum class CpuIdsOption : uint8_t { kAuto, kMmCid, kCpuId };

// The page heap that hands out spans.
enum class PageHeapOption : uint8_t { kAuto, kClassic, kHuge };

// How thoroughly blocks are checked.
enum class ModeOption : uint8_t { kDefault, kHardened, kDebug };

// The format of profiles whose name does not say it.
enum class ProfileFormatOption : uint8_t { kText, kProto };

// The profiles that are written to files. A set of them is a number with a bit for each.
enum class ProfileTypeOption : uint8_t {
  kHeap,
  kPeak,
  kGrowth,
  kAllocations,
  kLifetimes,
  kFragmentation
};
constexpr uint64_t SetOf(ProfileTypeOption type) { return uint64_t{1} << static_cast<int>(type); }

// How stacks are walked: our names, and those of gperftools.
enum class StackTraceOption : uint8_t {
  kTables,
  kFramePointers,
  kLibunwind,
  kGeneric,
  kLibgcc,
  kGenericFp,
  kGenericFpUnsafe
};

// The leak checker's mode; docs/subsystems/leak-checker.md tells the differences.
enum class HeapCheckOption : uint8_t {
  kOff,
  kMinimal,
  kNormal,
  kStrict,
  kDraconian,
  kAsIs,
  kLocal,
};

// The mappings of the program in which the leak checker looks for pointers.
enum class HeapCheckMappingsOption : uint8_t { kReached, kAll };

// Bounds of options that programs may also set at run time.
inline constexpr double kMostReleaseRate = 10;
inline constexpr uint64_t kLeastTotalThreadCacheBytes = uint64_t{512} << 10;
// Stands for kThreadCacheBytesPerCpu for each CPU where that is more.
inline constexpr uint64_t kDefaultTotalThreadCacheBytes = uint64_t{32} << 20;
inline constexpr uint64_t kThreadCacheBytesPerCpu = uint64_t{4} << 20;
inline constexpr uint64_t kMostTotalThreadCacheBytes = uint64_t{1} << 30;
// Stands for a part of kDefaultTotalThreadCacheBytes for each CPU where that is more.
inline constexpr uint64_t kDefaultPerCpuCacheSize = uint64_t{4} << 20;
inline constexpr uint64_t kLeastPerCpuCacheSize = uint64_t{64} << 10;
inline constexpr uint64_t kMostPerCpuCacheSize = uint64_t{1} << 30;
// The largest size in mebibytes: beyond any address space, but small enough that no sum overflows.
inline constexpr uint64_t kMostMebibytes = uint64_t{1} << 28;

// The most bytes between two files of the heap profiler.
inline constexpr uint64_t kMostProfileInterval = uint64_t{1} << 60;

// The largest size of a block in bytes, beyond any address space as well.
inline constexpr int64_t kMostBlockBytes = int64_t{1} << 48;

// The defaults are those of a process without any variable. option_table.h gives the meaning of
// each option.
struct Options {
  ModeOption mode = ModeOption::kDefault;
  uint64_t quarantine_size = uint64_t{16} << 20;
  bool zero_on_free = false;
  bool check_deletes = true;
  FrontEndOption front_end = FrontEndOption::kAuto;
  CpuIdsOption cpu_ids = CpuIdsOption::kAuto;
  PageHeapOption page_heap = PageHeapOption::kAuto;
  uint64_t max_per_cpu_cache_size = kDefaultPerCpuCacheSize;
  double release_rate = 1.0;
  uint64_t release_half_life = 1000;
  bool background = false;
  uint64_t max_total_thread_cache_bytes = kDefaultTotalThreadCacheBytes;
  uint64_t transfer_num_obj = 0;
  uint64_t heap_limit_mb = 0;
  uint64_t soft_limit_mb = 0;
  CgroupOption cgroup = CgroupOption::kAuto;
  PathOption cgroup_root;
  bool aggressive_decommit = false;
  bool skip_sbrk = false;
  bool skip_mmap = false;
  bool disable_memory_release = false;
  uint64_t devmem_start = 0;
  uint64_t devmem_limit = 0;
  PathOption devmem_device;
  PathOption memfs_malloc_path;
  uint64_t memfs_limit_mb = 0;
  bool memfs_abort_on_fail = false;
  bool memfs_ignore_mmap_fail = false;
  bool memfs_map_private = false;
  bool memfs_disable_fallback = false;
  int64_t large_alloc_report_threshold = 0;
  uint64_t sample_parameter = kDefaultSamplePeriod;
  uint64_t max_samples = uint64_t{1} << 20;
  int64_t guarded_sample_parameter = -1;
  uint64_t guarded_slots = 256;
  PathOption heap_profile;
  uint64_t profile_types = SetOf(ProfileTypeOption::kHeap);
  uint64_t heap_profile_signal = 0;
  ProfileFormatOption profile_format = ProfileFormatOption::kText;
  HeapCheckOption heap_check = HeapCheckOption::kOff;
  bool heap_check_after_destructors = false;
  bool heap_check_ignore_global_live = true;
  bool heap_check_ignore_thread_live = true;
  bool heap_check_identify_leaks = false;
  bool heap_check_test_pointer_alignment = false;
  uint64_t heap_check_pointer_source_alignment = sizeof(void*);
  int64_t heap_check_max_pointer_offset = 1024;
  uint64_t heap_check_max_leaks = 20;
  PathOption heap_check_dump_directory;
  PathOption heap_check_suppressions;
  uint64_t heap_check_exit_code = 1;
  HeapCheckMappingsOption heap_check_mappings = HeapCheckMappingsOption::kReached;
  bool heap_check_report = true;
  bool heap_profiler_cleanup = true;
  bool heap_profiler_use_pid = false;
  bool heap_profiler_mmap = false;
  bool heap_profiler_only_mmap = false;
  bool heap_profiler_mmap_log = false;
  PathOption heap_profiler_prefix;
  uint64_t heap_profiler_allocation_interval = uint64_t{1} << 30;
  uint64_t heap_profiler_deallocation_interval = 0;
  uint64_t heap_profiler_inuse_interval = uint64_t{100} << 20;
  uint64_t heap_profiler_time_interval = 0;
  uint64_t heap_profiler_signal = 0;
  StackTraceOption stacktrace_method = StackTraceOption::kTables;
  bool stacktrace_method_verbose = false;
  bool trace = false;
  PathOption trace_file;
  bool page_fence = false;
  bool page_fence_never_reclaim = false;
  bool page_fence_readable = false;
  bool reclaim_memory = true;
  uint64_t max_free_queue_size = uint64_t{10} << 20;
  bool symbolize_stacktrace = true;
  uint64_t check_interval = 0;
  uint64_t malloc_stats = 0;
  bool exit_check = true;
  PathOption exit_report;
  PathOption crash_report;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_OPTIONS_H_
