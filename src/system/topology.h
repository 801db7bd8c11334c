// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts the CPUs.

#ifndef TCMALLOC_SYSTEM_TOPOLOGY_H_
#define TCMALLOC_SYSTEM_TOPOLOGY_H_

#include <string_view>

namespace tcmalloc {

struct CgroupLimits;

// Returns how many CPUs this process may use now; at least 1. May change errno.
int UsableCpus();

// Returns that number under `limits`: no more than the quota pays for and the cpuset holds.
int UsableCpus(const CgroupLimits& limits);

// Returns one more than the largest number that a CPU can ever have in this system, plugged in or
// not; at least 1. CPU numbers may have gaps, so this is no count. May change errno.
int PossibleCpus();

// Returns a bound above every number that the kernel gives to a CPU, at most 3 more than needed.
// PossibleCpus is no such bound, because containers may present another list of CPUs than the
// kernel has. Returns 0 if the kernel does not tell. May change errno.
int EndOfCpuIds();

// Returns the bits of a mask of CPUs that the kernel printed, as "ff" or "f,ffffffff"; 0 if `mask`
// is not one.
int BitsOfCpuMask(std::string_view mask);

// Returns one more than the largest number in a list like "0-3,8,10-11"; 0 if `list` is not such a
// list or holds numbers that no system has.
int EndOfCpuList(std::string_view list);

// No system has more.
inline constexpr int kMostCpus = 1 << 16;

// Returns how many numbers such a list holds; 0 if `list` is not one.
int CountOfCpuList(std::string_view list);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_TOPOLOGY_H_
