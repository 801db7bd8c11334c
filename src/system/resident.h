// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads how much of this process is resident.

#ifndef TCMALLOC_SYSTEM_RESIDENT_H_
#define TCMALLOC_SYSTEM_RESIDENT_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tcmalloc {

// Returns the resident bytes of this process, including its share of files, from `statm`. They are
// exact to within the differences between the kernel's counters of the CPUs. No value if the file
// does not exist or the process has no descriptor left. Takes some microseconds. Thread safe. May
// change errno.
std::optional<uint64_t> ResidentBytes(const char* statm = "/proc/self/statm");

// Parses "TOTAL RESIDENT ...", as in /proc/PID/statm. Returns resident pages of the kernel; 0 for
// any other line.
uint64_t ParseResidentPages(std::string_view line);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RESIDENT_H_
