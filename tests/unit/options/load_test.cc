// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "options/load.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <iterator>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "options/option_table.h"
#include "system/environment.h"

namespace tcmalloc {
namespace {

struct Loaded {
  Options options;
  std::string messages;
};

Loaded Load(const std::vector<std::string>& variables) {
  std::vector<const char*> block;
  for (const std::string& variable : variables) block.push_back(variable.c_str());
  block.push_back(nullptr);
  Environment environment(block.data());
  Loaded loaded;
  ::testing::internal::CaptureStderr();
  LoadOptions(environment, &loaded.options);
  loaded.messages = ::testing::internal::GetCapturedStderr();
  return loaded;
}

TEST(OptionsTest, DefaultsOfAnEmptyEnvironment) {
  const auto [options, messages] = Load({});
  EXPECT_EQ(options.mode, ModeOption::kDefault);
  EXPECT_FALSE(options.zero_on_free);
  EXPECT_TRUE(options.check_deletes);
  EXPECT_EQ(options.quarantine_size, 16777216u);
  EXPECT_EQ(options.front_end, FrontEndOption::kAuto);
  EXPECT_EQ(options.cpu_ids, CpuIdsOption::kAuto);
  EXPECT_EQ(options.max_per_cpu_cache_size, 4194304u);
  EXPECT_EQ(options.release_rate, 1.0);
  EXPECT_EQ(options.max_total_thread_cache_bytes, 33554432u);
  EXPECT_EQ(options.transfer_num_obj, 0u);
  EXPECT_EQ(options.heap_limit_mb, 0u);
  EXPECT_EQ(options.soft_limit_mb, 0u);
  EXPECT_EQ(options.cgroup, CgroupOption::kAuto);
  EXPECT_TRUE(options.cgroup_root.empty());
  EXPECT_EQ(options.devmem_start, 0u);
  EXPECT_EQ(options.devmem_limit, 0u);
  EXPECT_TRUE(options.devmem_device.empty());
  EXPECT_TRUE(options.memfs_malloc_path.empty());
  EXPECT_EQ(options.memfs_limit_mb, 0u);
  EXPECT_FALSE(options.memfs_abort_on_fail);
  EXPECT_FALSE(options.memfs_ignore_mmap_fail);
  EXPECT_FALSE(options.memfs_map_private);
  EXPECT_FALSE(options.memfs_disable_fallback);
  EXPECT_FALSE(options.aggressive_decommit);
  EXPECT_FALSE(options.skip_sbrk);
  EXPECT_FALSE(options.skip_mmap);
  EXPECT_FALSE(options.disable_memory_release);
  EXPECT_EQ(options.large_alloc_report_threshold, 0);
  EXPECT_EQ(options.sample_parameter, 2097152u);
  EXPECT_EQ(options.max_samples, 1048576u);
  EXPECT_EQ(options.guarded_sample_parameter, -1);
  EXPECT_EQ(options.guarded_slots, 256u);
  EXPECT_FALSE(options.trace);
  EXPECT_FALSE(options.page_fence);
  EXPECT_TRUE(options.reclaim_memory);
  EXPECT_EQ(options.max_free_queue_size, 10485760u);
  EXPECT_TRUE(options.symbolize_stacktrace);
  EXPECT_EQ(options.check_interval, 0u);
  EXPECT_EQ(options.malloc_stats, 0u);
  EXPECT_TRUE(options.exit_report.empty());
  EXPECT_EQ(messages, "");
}

TEST(OptionsTest, EveryVariableSetsItsOption) {
  const std::vector<std::string> variables = {
      "TCMALLOC_FRONT_END=per_cpu",
      "TCMALLOC_CPU_IDS=cpu_id",
      "TCMALLOC_PAGE_HEAP=huge",
      "TCMALLOC_MAX_PER_CPU_CACHE_SIZE=262144",
      "TCMALLOC_RELEASE_RATE=2.5",
      "TCMALLOC_RELEASE_HALF_LIFE=500",
      "TCMALLOC_BACKGROUND=1",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1048576",
      "TCMALLOC_TRANSFER_NUM_OBJ=64",
      "TCMALLOC_HEAP_LIMIT_MB=100",
      "TCMALLOC_SOFT_LIMIT_MB=80",
      "TCMALLOC_CGROUP=off",
      "TCMALLOC_CGROUP_ROOT=/root/of/all",
      "TCMALLOC_DEVMEM_START=4096",
      "TCMALLOC_DEVMEM_LIMIT=8192",
      "TCMALLOC_DEVMEM_DEVICE=/dev/memory",
      "TCMALLOC_MEMFS_MALLOC_PATH=/mnt/heap",
      "TCMALLOC_MEMFS_LIMIT_MB=512",
      "TCMALLOC_MEMFS_ABORT_ON_FAIL=1",
      "TCMALLOC_MEMFS_IGNORE_MMAP_FAIL=1",
      "TCMALLOC_MEMFS_MAP_PRIVATE=1",
      "TCMALLOC_MEMFS_DISABLE_FALLBACK=1",
      "TCMALLOC_AGGRESSIVE_DECOMMIT=t",
      "TCMALLOC_SKIP_SBRK=1",
      "TCMALLOC_SKIP_MMAP=yes",
      "TCMALLOC_DISABLE_MEMORY_RELEASE=",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=-1",
      "TCMALLOC_SAMPLE_PARAMETER=65536",
      "TCMALLOC_MAX_SAMPLES=1000",
      "TCMALLOC_GUARDED_SAMPLE_PARAMETER=1M",
      "TCMALLOC_GUARDED_SLOTS=64",
      "TCMALLOC_HEAP_PROFILE=/some/profile",
      "TCMALLOC_PROFILE_TYPE=peak,growth",
      "TCMALLOC_HEAP_PROFILE_SIGNAL=12",
      "TCMALLOC_PROFILE_FORMAT=proto",
      "HEAPCHECK=as-is",
      "HEAP_CHECK_AFTER_DESTRUCTORS=1",
      "HEAP_CHECK_IGNORE_GLOBAL_LIVE=0",
      "HEAP_CHECK_IGNORE_THREAD_LIVE=0",
      "HEAP_CHECK_IDENTIFY_LEAKS=1",
      "HEAP_CHECK_TEST_POINTER_ALIGNMENT=1",
      "HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=4",
      "HEAP_CHECK_MAX_POINTER_OFFSET=-1",
      "HEAP_CHECK_MAX_LEAKS=7",
      "HEAP_CHECK_DUMP_DIRECTORY=/some/folder",
      "TCMALLOC_HEAP_CHECK_SUPPRESSIONS=/some/suppressions",
      "TCMALLOC_HEAP_CHECK_EXIT_CODE=23",
      "TCMALLOC_HEAP_CHECK_MAPPINGS=all",
      "TCMALLOC_HEAP_CHECK_REPORT=0",
      "HEAPPROFILE=/some/prefix",
      "HEAP_PROFILE_ALLOCATION_INTERVAL=4K",
      "HEAP_PROFILE_DEALLOCATION_INTERVAL=5000",
      "HEAP_PROFILE_INUSE_INTERVAL=1M",
      "HEAP_PROFILE_TIME_INTERVAL=60",
      "HEAPPROFILESIGNAL=10",
      "HEAP_PROFILE_CLEANUP=false",
      "HEAPPROFILE_USE_PID=1",
      "HEAP_PROFILE_MMAP=1",
      "HEAP_PROFILE_ONLY_MMAP=1",
      "HEAP_PROFILE_MMAP_LOG=1",
      "TCMALLOC_STACKTRACE_METHOD=libgcc",
      "TCMALLOC_STACKTRACE_METHOD_VERBOSE=1",
      "TCMALLOC_TRACE=1",
      "TCMALLOC_TRACE_FILE=/some/trace",
      "TCMALLOC_PAGE_FENCE=1",
      "TCMALLOC_PAGE_FENCE_NEVER_RECLAIM=1",
      "TCMALLOC_PAGE_FENCE_READABLE=1",
      "TCMALLOC_RECLAIM_MEMORY=0",
      "TCMALLOC_MAX_FREE_QUEUE_SIZE=4096",
      "TCMALLOC_SYMBOLIZE_STACKTRACE=f",
      "TCMALLOC_CHECK_INTERVAL=500",
      "MALLOCSTATS=2",
      "TCMALLOC_EXIT_CHECK=0",
      "TCMALLOC_MODE=hardened",
      "TCMALLOC_QUARANTINE_SIZE=8K",
      "TCMALLOC_ZERO_ON_FREE=1",
      "TCMALLOC_CHECK_DELETES=0",
      "TCMALLOC_EXIT_REPORT=/some/file",
      "TCMALLOC_CRASH_REPORT=/some/crash",
  };
  for (const OptionRow& row : OptionTable()) {
    const std::string setting = std::string(row.variable) + "=";
    EXPECT_TRUE(std::ranges::any_of(
        variables, [&](const std::string& variable) { return variable.starts_with(setting); }))
        << "add " << row.variable << " to this test";
  }
  const auto [options, messages] = Load(variables);
  EXPECT_EQ(options.front_end, FrontEndOption::kPerCpu);
  EXPECT_EQ(options.cpu_ids, CpuIdsOption::kCpuId);
  EXPECT_EQ(options.max_per_cpu_cache_size, 262144u);
  EXPECT_EQ(options.release_rate, 2.5);
  EXPECT_EQ(options.release_half_life, 500u);
  EXPECT_TRUE(options.background);
  EXPECT_EQ(options.page_heap, PageHeapOption::kHuge);
  EXPECT_EQ(options.max_total_thread_cache_bytes, 1048576u);
  EXPECT_EQ(options.transfer_num_obj, 64u);
  EXPECT_EQ(options.heap_limit_mb, 100u);
  EXPECT_EQ(options.soft_limit_mb, 80u);
  EXPECT_EQ(options.heap_check, HeapCheckOption::kAsIs);
  EXPECT_TRUE(options.heap_check_after_destructors);
  EXPECT_FALSE(options.heap_check_ignore_global_live);
  EXPECT_FALSE(options.heap_check_ignore_thread_live);
  EXPECT_TRUE(options.heap_check_identify_leaks);
  EXPECT_TRUE(options.heap_check_test_pointer_alignment);
  EXPECT_EQ(options.heap_check_pointer_source_alignment, 4u);
  EXPECT_EQ(options.heap_check_max_pointer_offset, -1);
  EXPECT_EQ(options.heap_check_max_leaks, 7u);
  EXPECT_STREQ(options.heap_check_dump_directory.text, "/some/folder");
  EXPECT_STREQ(options.heap_check_suppressions.text, "/some/suppressions");
  EXPECT_EQ(options.heap_check_exit_code, 23u);
  EXPECT_EQ(options.heap_check_mappings, HeapCheckMappingsOption::kAll);
  EXPECT_FALSE(options.heap_check_report);
  EXPECT_EQ(options.cgroup, CgroupOption::kOff);
  EXPECT_STREQ(options.cgroup_root.text, "/root/of/all");
  EXPECT_STREQ(options.heap_profiler_prefix.text, "/some/prefix");
  EXPECT_EQ(options.heap_profiler_allocation_interval, 4096u);
  EXPECT_EQ(options.heap_profiler_deallocation_interval, 5000u);
  EXPECT_EQ(options.heap_profiler_inuse_interval, 1048576u);
  EXPECT_EQ(options.heap_profiler_time_interval, 60u);
  EXPECT_EQ(options.heap_profiler_signal, 10u);
  EXPECT_FALSE(options.heap_profiler_cleanup);
  EXPECT_TRUE(options.heap_profiler_use_pid);
  EXPECT_TRUE(options.heap_profiler_mmap);
  EXPECT_TRUE(options.heap_profiler_only_mmap);
  EXPECT_TRUE(options.heap_profiler_mmap_log);
  EXPECT_EQ(options.devmem_start, 4096u);
  EXPECT_EQ(options.devmem_limit, 8192u);
  EXPECT_STREQ(options.devmem_device.text, "/dev/memory");
  EXPECT_STREQ(options.memfs_malloc_path.text, "/mnt/heap");
  EXPECT_EQ(options.memfs_limit_mb, 512u);
  EXPECT_TRUE(options.memfs_abort_on_fail);
  EXPECT_TRUE(options.memfs_ignore_mmap_fail);
  EXPECT_TRUE(options.memfs_map_private);
  EXPECT_TRUE(options.memfs_disable_fallback);
  EXPECT_TRUE(options.aggressive_decommit);
  EXPECT_TRUE(options.skip_sbrk);
  EXPECT_TRUE(options.skip_mmap);
  EXPECT_TRUE(options.disable_memory_release);
  EXPECT_EQ(options.large_alloc_report_threshold, -1);
  EXPECT_EQ(options.profile_types,
            SetOf(ProfileTypeOption::kPeak) | SetOf(ProfileTypeOption::kGrowth));
  EXPECT_EQ(options.heap_profile_signal, 12u);
  EXPECT_EQ(options.stacktrace_method, StackTraceOption::kLibgcc);
  EXPECT_TRUE(options.stacktrace_method_verbose);
  EXPECT_TRUE(options.trace);
  EXPECT_STREQ(options.trace_file.text, "/some/trace");
  EXPECT_TRUE(options.page_fence);
  EXPECT_TRUE(options.page_fence_never_reclaim);
  EXPECT_TRUE(options.page_fence_readable);
  EXPECT_FALSE(options.reclaim_memory);
  EXPECT_EQ(options.max_free_queue_size, 4096u);
  EXPECT_FALSE(options.symbolize_stacktrace);
  EXPECT_EQ(options.check_interval, 500u);
  EXPECT_EQ(options.malloc_stats, 2u);
  EXPECT_FALSE(options.exit_check);
  EXPECT_EQ(options.mode, ModeOption::kHardened);
  EXPECT_EQ(options.quarantine_size, 8192u);
  EXPECT_TRUE(options.zero_on_free);
  EXPECT_FALSE(options.check_deletes);
  EXPECT_STREQ(options.exit_report.text, "/some/file");
  EXPECT_STREQ(options.crash_report.text, "/some/crash");
  EXPECT_EQ(messages,
            "tcmalloc: HEAPCHECK is set, but this library has no heap checker; running without it\n"
            "tcmalloc: HEAPPROFILE is set, but this library has no heap profiler; running without "
            "it\n");
}

TEST(OptionsTest, TheModeIsOneOfThreeWords) {
  EXPECT_EQ(Load({"TCMALLOC_MODE=hardened"}).options.mode, ModeOption::kHardened);
  EXPECT_EQ(Load({"TCMALLOC_MODE=debug"}).options.mode, ModeOption::kDebug);
  EXPECT_EQ(Load({"TCMALLOC_MODE=default"}).options.mode, ModeOption::kDefault);
  const auto [options, messages] = Load({"TCMALLOC_MODE=strict"});
  EXPECT_EQ(options.mode, ModeOption::kDefault);
  EXPECT_EQ(messages,
            "tcmalloc: TCMALLOC_MODE=\"strict\": expected default, hardened or debug; using "
            "default\n");
}

TEST(OptionsTest, AListWithAnUnknownWordIsIgnoredAndReported) {
  for (const char* list : {"peak,", ",", "peak,heaps", "heap peak", "HEAP"}) {
    const auto [options, messages] = Load({std::string("TCMALLOC_PROFILE_TYPE=") + list});
    EXPECT_EQ(options.profile_types, SetOf(ProfileTypeOption::kHeap)) << list;
    EXPECT_EQ(messages, std::string("tcmalloc: TCMALLOC_PROFILE_TYPE=\"") + list +
                            "\": expected a list of heap, peak, growth, allocations, lifetimes and "
                            "fragmentation, separated by commas; using heap\n");
  }
  EXPECT_EQ(Load({"TCMALLOC_PROFILE_TYPE=heap,heap,fragmentation"}).options.profile_types,
            SetOf(ProfileTypeOption::kHeap) | SetOf(ProfileTypeOption::kFragmentation));
  EXPECT_EQ(Load({"TCMALLOC_PROFILE_TYPE="}).messages, "");
}

TEST(OptionsTest, ValueOutOfRangeBecomesTheNearestAndIsReported) {
  Loaded loaded = Load({"TCMALLOC_RELEASE_RATE=11.25"});
  EXPECT_EQ(loaded.options.release_rate, 10.0);
  EXPECT_EQ(
      loaded.messages,
      "tcmalloc: TCMALLOC_RELEASE_RATE=\"11.25\": expected a number from 0 to 10; using 10\n");
  loaded = Load({"TCMALLOC_RELEASE_RATE=-1"});
  EXPECT_EQ(loaded.options.release_rate, 0.0);
  loaded = Load({"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=1"});
  EXPECT_EQ(loaded.options.max_total_thread_cache_bytes, 512u << 10);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=\"1\": expected a number from 524288 "
            "to 1073741824 bytes, or with K, M, G or T; using 524288 bytes\n");
  loaded = Load({"TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=99999999999999999999999"});
  EXPECT_EQ(loaded.options.max_total_thread_cache_bytes, 1u << 30);
  loaded = Load({"TCMALLOC_MAX_PER_CPU_CACHE_SIZE=65535"});
  EXPECT_EQ(loaded.options.max_per_cpu_cache_size, 64u << 10);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: TCMALLOC_MAX_PER_CPU_CACHE_SIZE=\"65535\": expected a number from 65536 "
            "to 1073741824 bytes, or with K, M, G or T; using 65536 bytes\n");
}

TEST(OptionsTest, NumbersThatMustBePowersOfTwoAreReportedIfTheyAreNone) {
  Loaded loaded = Load({"HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=3"});
  EXPECT_EQ(loaded.options.heap_check_pointer_source_alignment, 8u);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=\"3\": expected a power of two from 1 "
            "to 4096 bytes; using 8 bytes\n");
  loaded = Load({"HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=5000"});
  EXPECT_EQ(loaded.options.heap_check_pointer_source_alignment, 4096u);
  loaded = Load({"HEAP_CHECK_POINTER_SOURCE_ALIGNMENT=2"});
  EXPECT_EQ(loaded.options.heap_check_pointer_source_alignment, 2u);
  EXPECT_EQ(loaded.messages, "");
}

TEST(OptionsTest, SizesMayHaveASuffix) {
  const auto [options, messages] = Load({
      "TCMALLOC_HEAP_LIMIT_MB=1G",
      "TCMALLOC_SOFT_LIMIT_MB=1K",
      "TCMALLOC_MEMFS_LIMIT_MB=3MiB",
      "TCMALLOC_DEVMEM_START=1T",
      "TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES=64M",
      "TCMALLOC_MAX_PER_CPU_CACHE_SIZE=256kB",
      "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=2G",
  });
  EXPECT_EQ(options.heap_limit_mb, 1024u);
  EXPECT_EQ(options.soft_limit_mb, 1u) << "rounded down it would be no limit";
  EXPECT_EQ(options.memfs_limit_mb, 3u);
  EXPECT_EQ(options.devmem_start, 1u << 20);
  EXPECT_EQ(options.max_total_thread_cache_bytes, 64u << 20);
  EXPECT_EQ(options.max_per_cpu_cache_size, 256u << 10);
  EXPECT_EQ(options.large_alloc_report_threshold, int64_t{2} << 30);
  EXPECT_EQ(messages, "");
}

TEST(OptionsTest, SizesThatAreNoneAreReported) {
  const Loaded loaded = Load({"TCMALLOC_HEAP_LIMIT_MB=1.5G"});
  EXPECT_EQ(loaded.options.heap_limit_mb, 0u);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: TCMALLOC_HEAP_LIMIT_MB=\"1.5G\": expected a number from 0 to 268435456 MiB, "
            "or with K, M, G or T; using 0 (no limit)\n");
  EXPECT_EQ(Load({"TCMALLOC_TRANSFER_NUM_OBJ=1K"}).messages,
            "tcmalloc: TCMALLOC_TRANSFER_NUM_OBJ=\"1K\": expected a number from 0 to 512 objects; "
            "using 0 (the built-in numbers)\n")
      << "a count is no size";
}

TEST(OptionsTest, ANumberThatMeansSomethingElseIsReportedWithItsMeaning) {
  const std::pair<const char*, const char*> cases[] = {
      {"TCMALLOC_HEAP_LIMIT_MB=1X", "using 0 (no limit)\n"},
      {"TCMALLOC_HEAP_LIMIT_MB=-5", "using 0 (no limit)\n"},
      {"TCMALLOC_SOFT_LIMIT_MB=1X", "using 0 (the container's limits alone)\n"},
      {"TCMALLOC_DEVMEM_START=1X", "using 0 (no device)\n"},
      {"TCMALLOC_DEVMEM_LIMIT=1X", "using 0 (no limit)\n"},
      {"TCMALLOC_MEMFS_LIMIT_MB=1X", "using 0 (no limit)\n"},
      {"TCMALLOC_TRANSFER_NUM_OBJ=x", "using 0 (the built-in numbers)\n"},
      {"TCMALLOC_RELEASE_RATE=-1", "using 0 (none goes back on its own)\n"},
      {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=1X", "using 0 (no reports)\n"},
      {"TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD=-2", "using -1 (no reports)\n"},
      {"MALLOCSTATS=yes", "using 0 (no statistics)\n"},
      {"MALLOCSTATS=3", "using 2\n"},
      {"TCMALLOC_RELEASE_HALF_LIFE=x", "using 1000 milliseconds\n"},
  };
  for (const auto& [variable, end] : cases) {
    const std::string messages = Load({variable}).messages;
    EXPECT_TRUE(messages.ends_with(end)) << messages;
  }
}

// A table row that explains 0 in the documentation explains it in messages as well.
TEST(OptionTableTest, ZeroHasAMeaningInMessagesWhereItHasOneInThePage) {
  for (const OptionRow& row : OptionTable()) {
    const bool explained = row.meaning.find(" 0 ") != std::string_view::npos;
    EXPECT_TRUE(!explained || !row.zero.empty()) << row.variable;
  }
}

TEST(OptionsTest, MissingToolsAreReported) {
  EXPECT_EQ(Load({"HEAPPROFILE=/tmp/heap"}).messages,
            "tcmalloc: HEAPPROFILE is set, but this library has no heap profiler; running without "
            "it\n");
  for (const MissingTool& missing : MissingTools()) {
    const std::string name(missing.variable);
    EXPECT_NE(Load({name + "=x"}).messages.find(missing.tool), std::string::npos) << name;
    EXPECT_EQ(Load({name + "="}).messages, "") << name;
    EXPECT_EQ(Load({name + "_USE_PID=1"}).messages, "") << name;
  }
}

TEST(OptionsTest, NoSourceOfMemoryIsReported) {
  EXPECT_EQ(Load({"TCMALLOC_SKIP_MMAP=1"}).messages, "");
  EXPECT_EQ(Load({"TCMALLOC_SKIP_SBRK=1"}).messages, "");
  EXPECT_EQ(Load({"TCMALLOC_SKIP_SBRK=1", "TCMALLOC_SKIP_MMAP=1"}).messages,
            "tcmalloc: TCMALLOC_SKIP_MMAP and TCMALLOC_SKIP_SBRK are both set: there is no memory "
            "left to take, and every allocation fails\n");
  for (const char* source : {"TCMALLOC_DEVMEM_START=1", "TCMALLOC_MEMFS_MALLOC_PATH=/mnt/heap"}) {
    EXPECT_EQ(Load({"TCMALLOC_SKIP_SBRK=1", "TCMALLOC_SKIP_MMAP=1", source}).messages, "");
  }
}

TEST(OptionsTest, EveryWordHasItsMeaning) {
  EXPECT_EQ(Load({"TCMALLOC_FRONT_END=auto"}).options.front_end, FrontEndOption::kAuto);
  EXPECT_EQ(Load({"TCMALLOC_FRONT_END=per_thread"}).options.front_end, FrontEndOption::kPerThread);
  EXPECT_EQ(Load({"TCMALLOC_FRONT_END=per_cpu"}).options.front_end, FrontEndOption::kPerCpu);
  for (const char* word : {"auto", "per_thread", "per_cpu"}) {
    EXPECT_EQ(Load({std::string("TCMALLOC_FRONT_END=") + word}).messages, "");
  }
  EXPECT_EQ(Load({"TCMALLOC_CPU_IDS=auto"}).options.cpu_ids, CpuIdsOption::kAuto);
  EXPECT_EQ(Load({"TCMALLOC_CPU_IDS=mm_cid"}).options.cpu_ids, CpuIdsOption::kMmCid);
  EXPECT_EQ(Load({"TCMALLOC_CPU_IDS=cpu_id"}).options.cpu_ids, CpuIdsOption::kCpuId);
}

TEST(OptionsTest, OtherWordsAreReportedAndIgnored) {
  for (const char* word : {"per_core", "per_cpu ", "PER_CPU", "per", "per_threads", "2"}) {
    const auto [options, messages] = Load({std::string("TCMALLOC_FRONT_END=") + word});
    EXPECT_EQ(options.front_end, FrontEndOption::kAuto) << word;
    EXPECT_EQ(messages, std::string("tcmalloc: TCMALLOC_FRONT_END=\"") + word +
                            "\": expected auto, per_thread or per_cpu; using auto\n");
  }
  const auto [options, messages] = Load({"TCMALLOC_CPU_IDS=cid"});
  EXPECT_EQ(options.cpu_ids, CpuIdsOption::kAuto);
  EXPECT_EQ(messages,
            "tcmalloc: TCMALLOC_CPU_IDS=\"cid\": expected auto, mm_cid or cpu_id; using auto\n");
}

TEST(OptionsTest, ValueThatIsNotUnderstoodIsReportedAndIgnored) {
  Loaded loaded = Load({"TCMALLOC_RELEASE_RATE=fast"});
  EXPECT_EQ(loaded.options.release_rate, 1.0);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: TCMALLOC_RELEASE_RATE=\"fast\": expected a number from 0 to 10; using 1\n");
  loaded = Load({"TCMALLOC_SKIP_MMAP=maybe"});
  EXPECT_FALSE(loaded.options.skip_mmap);
  EXPECT_EQ(loaded.messages,
            "tcmalloc: TCMALLOC_SKIP_MMAP=\"maybe\": expected true or false; using false\n");
  loaded = Load({"TCMALLOC_HEAP_LIMIT_MB=-5"});
  EXPECT_EQ(loaded.options.heap_limit_mb, 0u);
  EXPECT_NE(loaded.messages, "");
}

TEST(OptionsTest, ReportsAreOneShortPrintableLine) {
  const auto [options, messages] =
      Load({"TCMALLOC_RELEASE_RATE=a\nb\x1b[31m" + std::string(1000, 'x')});
  EXPECT_EQ(std::count(messages.begin(), messages.end(), '\n'), 1);
  EXPECT_LT(messages.size(), 200u);
  EXPECT_NE(messages.find("\"a?b?[31mxxx"), std::string::npos);
  EXPECT_NE(messages.find("xxx...\""), std::string::npos);
}

TEST(OptionsTest, EmptyNumberWordOrPathIsAsGoodAsNone) {
  const auto [options, messages] =
      Load({"TCMALLOC_RELEASE_RATE=", "TCMALLOC_HEAP_LIMIT_MB=", "TCMALLOC_EXIT_REPORT=",
            "TCMALLOC_FRONT_END=", "TCMALLOC_MAX_PER_CPU_CACHE_SIZE="});
  EXPECT_EQ(options.front_end, FrontEndOption::kAuto);
  EXPECT_EQ(options.max_per_cpu_cache_size, uint64_t{4} << 20);
  EXPECT_EQ(options.release_rate, 1.0);
  EXPECT_EQ(options.heap_limit_mb, 0u);
  EXPECT_TRUE(options.exit_report.empty());
  EXPECT_EQ(messages, "");
}

TEST(OptionsTest, PathsMustFit) {
  const std::string longest(4095, 'p');
  Loaded loaded = Load({"TCMALLOC_EXIT_REPORT=" + longest});
  EXPECT_EQ(loaded.options.exit_report.text, longest);
  EXPECT_EQ(loaded.messages, "");
  loaded = Load({"TCMALLOC_EXIT_REPORT=" + longest + "p"});
  EXPECT_TRUE(loaded.options.exit_report.empty());
  EXPECT_NE(loaded.messages.find("expected a path of less than 4096 bytes; using none\n"),
            std::string::npos);
}

TEST(OptionsTest, TheFirstOfTwoCounts) {
  const auto [options, messages] = Load({"MALLOCSTATS=1", "MALLOCSTATS=2", "MALLOCSTATS=x"});
  EXPECT_EQ(options.malloc_stats, 1u);
  EXPECT_EQ(messages, "");
}

TEST(OptionsTest, LikelyTyposAreReported) {
  EXPECT_EQ(Load({"TCMALLOC_RELEASE_RAT=1"}).messages,
            "tcmalloc: unknown variable \"TCMALLOC_RELEASE_RAT\"; did you mean "
            "TCMALLOC_RELEASE_RATE?\n");
  EXPECT_EQ(NearestVariable("TCMALLOC_FRONTEND"), "TCMALLOC_FRONT_END");
  EXPECT_EQ(NearestVariable("TCMALLOC_RELAESE_RATE"), "TCMALLOC_RELEASE_RATE");
  EXPECT_EQ(NearestVariable("TCMALLOC_SKIP_MAP"), "TCMALLOC_SKIP_MMAP");
  EXPECT_EQ(NearestVariable("TCMALLOC_HEAP_LIMIT_MBS"), "TCMALLOC_HEAP_LIMIT_MB");
  EXPECT_EQ(NearestVariable("TCMALLOC_HEAP_LIMIT"), "");
  EXPECT_EQ(NearestVariable("TCMALLOC_"), "");
  EXPECT_EQ(NearestVariable("TCMALLOC_" + std::string(1000, 'X')), "");
  EXPECT_EQ(NearestVariable("MALLOCSTAT"), "");
  for (const OptionRow& row : OptionTable()) EXPECT_EQ(NearestVariable(row.variable), "");
}

TEST(OptionsTest, VariablesWithoutEffectAreNoTypos) {
  for (const IgnoredVariable& ignored : IgnoredVariables()) {
    EXPECT_EQ(Load({std::string(ignored.variable) + "=1"}).messages, "") << ignored.variable;
    for (const OptionRow& row : OptionTable()) EXPECT_NE(row.variable, ignored.variable);
  }
}

// Variables of other libraries of this family, which a user may well have set.
TEST(OptionsTest, KnownNamesAreNoTypos) {
  for (const char* name : {
           "TCMALLOC_SAMPLE_PARAMETER",
           "TCMALLOC_LARGE_ALLOC_REPORT_THRESHOLD",
           "TCMALLOC_OVERRIDE_PAGESIZE",
           "TCMALLOC_DEVMEM_START",
           "TCMALLOC_DEVMEM_LIMIT",
           "TCMALLOC_DEVMEM_DEVICE",
           "TCMALLOC_MEMFS_MALLOC_PATH",
           "TCMALLOC_MEMFS_LIMIT_MB",
           "TCMALLOC_MEMFS_ABORT_ON_FAIL",
           "TCMALLOC_MEMFS_IGNORE_MMAP_FAIL",
           "TCMALLOC_MEMFS_MAP_PRIVATE",
           "TCMALLOC_MEMFS_DISABLE_FALLBACK",
           "TCMALLOC_ENABLE_SIZED_DELETE",
           "TCMALLOC_STACKTRACE_METHOD",
           "TCMALLOC_STACKTRACE_METHOD_VERBOSE",
           "TCMALLOC_TRACE",
           "TCMALLOC_TRACE_FILE",
           "TCMALLOC_PAGE_FENCE",
           "TCMALLOC_PAGE_FENCE_NEVER_RECLAIM",
           "TCMALLOC_PAGE_FENCE_READABLE",
           "TCMALLOC_RECLAIM_MEMORY",
           "TCMALLOC_MAX_FREE_QUEUE_SIZE",
           "TCMALLOC_SYMBOLIZE_STACKTRACE",
           "TCMALLOC_DISABLE_REPLACEMENT",
           "TCMALLOC_TEST_FAULT",
       }) {
    EXPECT_EQ(NearestVariable(name), "") << name;
  }
}

TEST(OptionTableTest, NoNameIsReadForMostVariables) {
  for (const OptionRow& row : OptionTable()) EXPECT_TRUE(MayBeOption(row.variable));
  for (const MissingTool& tool : MissingTools()) EXPECT_TRUE(MayBeOption(tool.variable));
  for (const char* name : {"", "H", "HEA", "PATH", "LANG", "TERM", "SSL_CERT_FILE"}) {
    EXPECT_FALSE(MayBeOption(name)) << name;
  }
}

TEST(OptionTableTest, RowsAreCompleteAndDefaultsInRange) {
  const Options defaults;
  std::set<std::string_view> names;
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(names.insert(row.variable).second) << row.variable;
    EXPECT_TRUE(row.meaning.ends_with('.')) << row.variable;
    if (const auto* type = std::get_if<CountType>(&row.type)) {
      EXPECT_GE(defaults.*type->field, type->min) << row.variable;
      EXPECT_LE(defaults.*type->field, type->max) << row.variable;
      if (type->power_of_two) {
        EXPECT_TRUE(std::has_single_bit(type->min) && std::has_single_bit(type->max));
      }
    }
    if (const auto* type = std::get_if<SizeType>(&row.type)) {
      EXPECT_GE(defaults.*type->field, type->min) << row.variable;
      EXPECT_LE(defaults.*type->field, type->max) << row.variable;
      EXPECT_EQ(row.unit, type->unit == SizeUnit::kByte ? "bytes" : "MiB") << row.variable;
    }
    if (const auto* type = std::get_if<RealType>(&row.type)) {
      EXPECT_GE(defaults.*type->field, type->min) << row.variable;
      EXPECT_LE(defaults.*type->field, type->max) << row.variable;
    }
  }
}

// Two rows that name one field would pass every other test.
TEST(OptionTableTest, EachRowHasItsOwnField) {
  std::set<const void*> fields;
  const Options options;
  for (const OptionRow& row : OptionTable()) {
    const void* field =
        std::visit([&](auto type) -> const void* { return &(options.*type.field); }, row.type);
    EXPECT_TRUE(fields.insert(field).second) << row.variable;
  }
}

// Whatever the environment: no crash, every option in its range, one line for each report. Each
// variable has each value dozens of times; options_fuzz tries longer.
TEST(OptionsTest, AnyEnvironmentIsSafe) {
  std::minstd_rand random(9);
  const std::string values[] = {"",
                                "1",
                                "0",
                                "-1",
                                "9999999999999999999999",
                                "1e5",
                                "t",
                                "x",
                                std::string(5000, '7'),
                                "\n\n",
                                "2.5",
                                "1G",
                                "64KiB"};
  for (int round = 0; round < 500; ++round) {
    std::vector<std::string> variables;
    for (const OptionRow& row : OptionTable()) {
      std::string text(row.variable);
      text += "=" + values[random() % std::size(values)];
      for (size_t i = random() % 3; i > 0; --i) {
        text[random() % text.size()] = static_cast<char>(1 + random() % 255);
      }
      variables.push_back(std::move(text));
    }
    const auto [options, messages] = Load(variables);
    EXPECT_LE(options.front_end, FrontEndOption::kPerCpu);
    EXPECT_LE(options.cpu_ids, CpuIdsOption::kCpuId);
    EXPECT_GE(options.max_per_cpu_cache_size, 64u << 10);
    EXPECT_LE(options.malloc_stats, 2u);
    EXPECT_GE(options.release_rate, 0.0);
    EXPECT_LE(options.release_rate, 10.0);
    EXPECT_GE(options.max_total_thread_cache_bytes, 512u << 10);
    EXPECT_LT(std::char_traits<char>::length(options.exit_report.text), 4096u);
    EXPECT_LE(std::count(messages.begin(), messages.end(), '\n'), std::ssize(OptionTable()));
  }
}

}  // namespace
}  // namespace tcmalloc
