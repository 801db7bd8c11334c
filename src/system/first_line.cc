// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/first_line.h"

#include "system/line_reader.h"

namespace tcmalloc {

std::string_view ReadFirstLine(const char* path, std::span<char> buffer, bool* interfered) {
  LineReader lines(buffer.data(), buffer.size(), '\n');
  std::string_view line;
  const bool complete = lines.Open(path) && lines.Next(&line) && !lines.truncated();
  if (interfered != nullptr) *interfered |= lines.interfered();
  return complete ? line : std::string_view();
}

}  // namespace tcmalloc
