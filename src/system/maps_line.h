// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Parses lines of /proc/PID/maps.

#ifndef TCMALLOC_SYSTEM_MAPS_LINE_H_
#define TCMALLOC_SYSTEM_MAPS_LINE_H_

#include <cstdint>
#include <optional>
#include <string_view>

namespace tcmalloc {

// One mapping of a process.
struct MapsLine {
  uint64_t begin = 0;
  uint64_t end = 0;
  std::string_view permissions;  // such as "r-xp"; at least four characters
  uint64_t offset = 0;           // in the file
  std::string_view name;         // a path, such as /lib/libc.so.6, or "[stack]"; may be empty
};

// Returns no value if `line`, whose text the result refers to, is not such a line.
std::optional<MapsLine> ParseMapsLine(std::string_view line);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_MAPS_LINE_H_
