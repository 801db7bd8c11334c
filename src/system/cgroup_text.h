// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Parses the lines that the kernel writes about control groups.

#ifndef TCMALLOC_SYSTEM_CGROUP_TEXT_H_
#define TCMALLOC_SYSTEM_CGROUP_TEXT_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace tcmalloc {

// Every function accepts any text. Views in the results point into `line`.

// A line of /proc/PID/cgroup. Version 2 has no controllers.
struct CgroupMembership {
  std::string_view controllers;  // separated by commas
  std::string_view path;         // from the root of the hierarchy, beginning with '/'
};
bool ParseCgroupMembership(std::string_view line, CgroupMembership* membership);

// A line of /proc/PID/mountinfo. Both paths are still escaped, and begin with '/'.
struct MountLine {
  std::string_view root;   // the part of the file system that is mounted
  std::string_view point;  // where
  std::string_view type;
  std::string_view options;  // of the file system, separated by commas
};
bool ParseMountLine(std::string_view line, MountLine* mount);

// Returns true if `word` stands between the commas of `list`.
bool ListHolds(std::string_view list, std::string_view word);

// Writes a path of mountinfo without its escapes, each a backslash and three octal digits. Returns
// its length, or 0 if it does not fit.
size_t Unescape(std::string_view path, char* out, size_t capacity);

// No limit, because the file says so or cannot be understood.
inline constexpr uint64_t kNoMemoryLimit = UINT64_MAX;
inline constexpr int kNoCpuLimit = 0;

// Parses "max" or bytes, as in memory.max. In version 1 the largest multiple of a page means no
// limit.
uint64_t ParseMemoryLimit(std::string_view line);

// Parses "max PERIOD" or "QUOTA PERIOD", as in cpu.max. Returns CPUs, rounded up.
int ParseCpuMax(std::string_view line);
// Parses the two files of version 1, where a quota of -1 means no limit.
int ParseCpuQuota(std::string_view quota, std::string_view period);

// Parses "some avg10=PERCENT ...", as in memory.pressure. Returns hundredths of a percent of the
// last ten seconds in which some task waited for memory; 0 for any other line.
uint32_t ParsePressure(std::string_view line);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CGROUP_TEXT_H_
