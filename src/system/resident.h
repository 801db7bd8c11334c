// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// How much of this process is resident.

#ifndef TCMALLOC_SYSTEM_RESIDENT_H_
#define TCMALLOC_SYSTEM_RESIDENT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tcmalloc {

// Bytes of this process that are resident, its share of files included, from `statm`: to within
// what the kernel's counters of the CPUs are apart. Nothing where that cannot be read, because the
// file is not there or the process has no descriptor left. Takes some microseconds. Thread safe.
// May change errno.
std::optional<uint64_t> ResidentBytes(const char* statm = "/proc/self/statm");

// "TOTAL RESIDENT ...", as in /proc/PID/statm: resident pages of the kernel; 0 for any other line.
uint64_t ParseResidentPages(std::string_view line);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RESIDENT_H_
