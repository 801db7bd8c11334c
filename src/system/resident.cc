// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/resident.h"

#include <cstddef>

#include "system/auxv.h"
#include "system/first_line.h"
#include "system/number_text.h"

namespace tcmalloc {

std::optional<uint64_t> ResidentBytes(const char* statm) {
  char buffer[128];
  const std::string_view line = ReadFirstLine(statm, buffer);
  if (line.empty()) return std::nullopt;
  return ParseResidentPages(line) * KernelPageSize();
}

uint64_t ParseResidentPages(std::string_view line) {
  const size_t blank = line.find(' ');
  if (blank == std::string_view::npos) return 0;
  line.remove_prefix(blank + 1);
  uint64_t pages = 0;
  return TakeNumber(&line, &pages) ? pages : 0;
}

}  // namespace tcmalloc
