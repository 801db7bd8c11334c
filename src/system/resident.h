// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_SYSTEM_RESIDENT_H_
#define TCMALLOC_SYSTEM_RESIDENT_H_

#include <cstdint>
#include <optional>

namespace tcmalloc {

// Bytes of this process that are resident, from /proc/self/statm: to within
// what the kernel's counters of the CPUs are apart. Nothing where that cannot be read, because the
// file is not there or the process has no descriptor left. Takes some microseconds. Thread safe.
// May change errno.
std::optional<uint64_t> ResidentBytes();

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RESIDENT_H_
