// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Parses lists and masks of CPUs in the form of the kernel's files.

#ifndef TCMALLOC_SYSTEM_CPU_LIST_H_
#define TCMALLOC_SYSTEM_CPU_LIST_H_

#include <string_view>

namespace tcmalloc {

// No system has more CPUs.
inline constexpr int kMostCpus = 1 << 16;

// Returns the bits of a mask of CPUs that the kernel printed, as "ff" or "f,ffffffff"; 0 if `mask`
// is not one.
int BitsOfCpuMask(std::string_view mask);

// Returns one more than the largest number in a list like "0-3,8,10-11"; 0 if `list` is not such a
// list or holds numbers that no system has.
int EndOfCpuList(std::string_view list);

// Returns how many numbers such a list holds; 0 if `list` is not one.
int CountOfCpuList(std::string_view list);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CPU_LIST_H_
