// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Counts the CPUs.

#ifndef TCMALLOC_SYSTEM_TOPOLOGY_H_
#define TCMALLOC_SYSTEM_TOPOLOGY_H_

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

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_TOPOLOGY_H_
