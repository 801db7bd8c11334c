// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How many CPUs there are.

#ifndef TCMALLOC_SYSTEM_TOPOLOGY_H_
#define TCMALLOC_SYSTEM_TOPOLOGY_H_

#include <string_view>

namespace tcmalloc {

struct CgroupLimits;

// CPUs that this process may run on now; at least 1. May change errno.
int UsableCpus();

// Counts them where `limits` is in force: no more than the quota pays for and the cpuset
// holds.
int UsableCpus(const CgroupLimits& limits);

// One more than the largest number that a CPU can ever have in this system, plugged in or not; at
// least 1. CPU numbers may have gaps, so this is no count. May change errno.
int PossibleCpus();

// Above every number that the kernel gives to a CPU, by its own account and at most 3 more than
// needed: containers may present another list of CPUs than the kernel has, so that PossibleCpus is
// no bound. 0 where it does not tell. May change errno.
int EndOfCpuIds();

// How many bits a mask of CPUs has that the kernel printed, as "ff" or "f,ffffffff"; 0 if `mask` is
// not one.
int BitsOfCpuMask(std::string_view mask);

// One more than the largest number in a list like "0-3,8,10-11"; 0 if `list` is not such a list or
// holds numbers that no system has.
int EndOfCpuList(std::string_view list);

// No system has more.
inline constexpr int kMostCpus = 1 << 16;

// How many numbers such a list holds; 0 if `list` is not one.
int CountOfCpuList(std::string_view list);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_TOPOLOGY_H_
