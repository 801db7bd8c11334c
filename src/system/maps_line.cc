// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/maps_line.h"

#include "system/number_text.h"
#include "system/text_field.h"

namespace tcmalloc {

std::optional<MapsLine> ParseMapsLine(std::string_view line) {
  MapsLine parsed;
  if (!ParseHexNumber(TakeField(&line, '-'), &parsed.begin)) return std::nullopt;
  if (!ParseHexNumber(TakeField(&line, ' '), &parsed.end)) return std::nullopt;
  parsed.permissions = TakeField(&line, ' ');
  if (parsed.permissions.size() < 4) return std::nullopt;
  if (!ParseHexNumber(TakeField(&line, ' '), &parsed.offset)) return std::nullopt;
  TakeField(&line, ' ');  // the device
  TakeField(&line, ' ');  // the inode
  while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
  parsed.name = line;
  return parsed;
}

}  // namespace tcmalloc
