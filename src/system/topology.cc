// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/topology.h"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/bits.h"
#include "system/cgroup.h"
#include "system/first_line.h"
#include "system/line_reader.h"
#include "system/number_text.h"
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

// Removes the number of a CPU from the front of the list; -1 if there is none.
int TakeCpu(std::string_view* list) {
  uint64_t number = 0;
  return TakeNumber(list, &number) && number < kMostCpus ? static_cast<int>(number) : -1;
}

struct CpuRange {
  int first = 0;
  int end = 0;  // 0: no range
};

// Removes "a" or "a-b" from the front of the list.
CpuRange TakeRange(std::string_view* list) {
  const int first = TakeCpu(list);
  if (first < 0 || !list->starts_with('-')) return {first, first + 1};
  list->remove_prefix(1);
  const int last = TakeCpu(list);
  return {first, last < first ? 0 : last + 1};
}

// Calls add(CpuRange) for each range. Returns false if `list` is not a list.
template <typename F>
bool ForEachRange(std::string_view list, F add) {
  while (true) {
    const CpuRange range = TakeRange(&list);
    if (range.end == 0) return false;
    add(range);
    if (list.empty()) return true;
    if (!list.starts_with(',')) return false;
    list.remove_prefix(1);
  }
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

int EndOfCpuList(std::string_view list) {
  int end = 0;
  const bool valid = ForEachRange(list, [&](CpuRange range) { end = std::max(end, range.end); });
  return valid ? end : 0;
}

// Kernels write no number twice, but any text is handled.
int CountOfCpuList(std::string_view list) {
  int count = 0;
  const bool valid = ForEachRange(
      list, [&](CpuRange range) { count = std::min(count + range.end - range.first, kMostCpus); });
  return valid ? count : 0;
}

int BitsOfCpuMask(std::string_view mask) {
  int digits = 0;
  bool after_digit = false;
  for (const char c : mask) {
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (!digit && (c != ',' || !after_digit)) return 0;
    after_digit = digit;
    digits += digit ? 1 : 0;
  }
  return after_digit && digits <= kMostCpus / 4 ? digits * 4 : 0;
}

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
