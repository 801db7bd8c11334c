// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_PROCESS_MEMORY_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_PROCESS_MEMORY_H_

#include <cstdint>

namespace tcmalloc::bench {

// Returns the resident bytes, from /proc/self/smaps_rollup, which counts page by page. Where the
// kernel has no such file, statm is read, which may be off by some dozens of pages for each CPU.
// None of these functions allocates.
uint64_t ResidentBytes();

// The most that ever was resident: VmHWM of /proc/self/status.
uint64_t PeakResidentBytes();

// Returns the bytes of anonymous memory on hugepages; 0 where the kernel has no smaps_rollup.
uint64_t HugePageBytes();

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_PROCESS_MEMORY_H_
