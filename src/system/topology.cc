// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/topology.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "system/cgroup.h"
#include "system/cpu_list.h"
#include "system/first_line.h"
#include "system/line_reader.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The most that a kernel can be configured for is 8192.
constexpr int kMaskBits = 8192;

struct CpuMask {
  uint64_t words[kMaskBits / 64] = {};
  size_t size = 0;
};

// Returns an empty mask if the kernel gives none.
CpuMask AffinityMask() {
  CpuMask mask;
  const int bytes = system_calls.sched_getaffinity(0, sizeof(mask.words), mask.words);
  if (bytes > 0) mask.size = std::min(static_cast<size_t>(bytes), sizeof(mask.words)) / 8;
  return mask;
}

int EndOfMask(const CpuMask& mask) {
  for (size_t i = mask.size; i > 0; --i) {
    if (mask.words[i - 1] != 0)
      return static_cast<int>(i - 1) * 64 + Log2Floor(mask.words[i - 1]) + 1;
  }
  return 0;
}

// The kernel prints a digit for every four possible CPUs, whether the process may use them or not.
int BitsOfPrintedMask() {
  constexpr std::string_view kName = "Cpus_allowed:\t";
  char buffer[256];
  LineReader file(buffer, sizeof(buffer), '\n');
  if (!file.Open("/proc/self/status")) return 0;
  std::string_view line;
  while (file.Next(&line)) {
    if (!line.starts_with(kName)) continue;
    line.remove_prefix(kName.size());
    return file.truncated() ? 0 : BitsOfCpuMask(line);
  }
  return 0;
}

// Returns the bits of a mask that the kernel accepts, at most twice as many as it needs. The kernel
// refuses a mask that is too short for its CPUs.
int BitsOfShortestMask() {
  uint64_t words[kMaskBits / 64];
  for (size_t bytes = sizeof(words[0]); bytes <= sizeof(words); bytes *= 2) {
    if (system_calls.sched_getaffinity(0, bytes, words) > 0) return static_cast<int>(bytes) * 8;
  }
  return 0;
}

int Least(int cpus, int limit) { return limit == kNoCpuLimit ? cpus : std::min(cpus, limit); }

}  // namespace

int EndOfCpuIds() {
  const int printed = BitsOfPrintedMask();
  return printed > 0 ? printed : BitsOfShortestMask();
}

int UsableCpus() {
  const CpuMask mask = AffinityMask();
  int count = 0;
  for (size_t i = 0; i < mask.size; ++i) count += std::popcount(mask.words[i]);
  return std::max(count, 1);
}

int UsableCpus(const CgroupLimits& limits) {
  return Least(Least(UsableCpus(), limits.cpu_quota), limits.cpuset_cpus);
}

int PossibleCpus() {
  char buffer[256];
  const std::string_view line = ReadFirstLine("/sys/devices/system/cpu/possible", buffer);
  if (const int end = EndOfCpuList(line); end > 0) return end;
  return std::max(EndOfMask(AffinityMask()), 1);
}

}  // namespace tcmalloc
