// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/resident.h"

#include <string_view>

#include "system/auxv.h"
#include "system/cgroup_text.h"
#include "system/line_reader.h"

namespace tcmalloc {

std::optional<uint64_t> ResidentBytes() {
  char buffer[128];
  LineReader file(buffer, sizeof(buffer), '\n');
  std::string_view line;
  if (!file.Open("/proc/self/statm") || !file.Next(&line)) return std::nullopt;
  return ParseResidentPages(line) * KernelPageSize();
}

}  // namespace tcmalloc
