// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lines of /proc/PID/maps and smaps: any text, and those that the kernel writes.

#include <algorithm>
#include <cinttypes>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "system/proc_maps.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

using Kind = ProcMapsLine::Kind;

std::string MappingText(const ProcMapping& mapping) {
  char text[160];
  std::snprintf(
      text, sizeof(text), "%08" PRIxPTR "-%08" PRIxPTR " %c%c%c%c %08" PRIx64 " fe:01 %" PRIu64,
      mapping.start, mapping.end, mapping.readable ? 'r' : '-', mapping.writable ? 'w' : '-',
      mapping.executable ? 'x' : '-', mapping.shared ? 's' : 'p', mapping.offset, mapping.inode);
  // The kernel puts names into a column of their own, behind at least one blank.
  std::string line(text);
  line.resize(std::max<size_t>(line.size() + 1, 73), ' ');
  return line.append(mapping.name);
}

std::string SizeText(std::string_view field, uint64_t kilobytes) {
  char text[64];
  std::snprintf(text, sizeof(text), ": %15" PRIu64 " kB", kilobytes);
  return std::string(field) + text;
}

// Writes what was read as the kernel would, and reads it again.
void CheckMapping(const ProcMapping& mapping) {
  const std::string text = MappingText(mapping);
  const ProcMapsLine line = ParseProcMapsLine(text);
  TCMALLOC_CHECK(line.kind == Kind::kMapping);
  TCMALLOC_CHECK_EQ(line.mapping.start, mapping.start);
  TCMALLOC_CHECK_EQ(line.mapping.end, mapping.end);
  TCMALLOC_CHECK_EQ(line.mapping.readable, mapping.readable);
  TCMALLOC_CHECK_EQ(line.mapping.writable, mapping.writable);
  TCMALLOC_CHECK_EQ(line.mapping.executable, mapping.executable);
  TCMALLOC_CHECK_EQ(line.mapping.shared, mapping.shared);
  TCMALLOC_CHECK_EQ(line.mapping.offset, mapping.offset);
  TCMALLOC_CHECK_EQ(line.mapping.inode, mapping.inode);
  TCMALLOC_CHECK_EQ(line.mapping.name, mapping.name);
}

void CheckSize(std::string_view field, uint64_t kilobytes) {
  const std::string text = SizeText(field, kilobytes);
  const ProcMapsLine line = ParseProcMapsLine(text);
  TCMALLOC_CHECK(line.kind == Kind::kSize);
  TCMALLOC_CHECK_EQ(line.field, field);
  TCMALLOC_CHECK_EQ(line.bytes, kilobytes * 1024);
}

void CheckInside(std::string_view view, const std::vector<char>& text) {
  if (view.empty()) return;
  TCMALLOC_CHECK(view.data() >= text.data());
  TCMALLOC_CHECK(view.data() + view.size() <= text.data() + text.size());
}

void CheckAnyText(std::string_view text) {
  // Of exactly this size, so that a read beyond its end is noticed.
  const std::vector<char> exact(text.begin(), text.end());
  const ProcMapsLine line = ParseProcMapsLine({exact.data(), exact.size()});
  switch (line.kind) {
    case Kind::kMapping:
      TCMALLOC_CHECK_LE(line.mapping.start, line.mapping.end);
      CheckInside(line.mapping.name, exact);
      return CheckMapping(line.mapping);
    case Kind::kSize:
      TCMALLOC_CHECK_EQ(line.bytes % 1024, uint64_t{0});
      CheckInside(line.field, exact);
      return CheckSize(line.field, line.bytes / 1024);
    case Kind::kOther:
      TCMALLOC_CHECK_EQ(line.bytes, uint64_t{0});
      TCMALLOC_CHECK_EQ(line.mapping.end, uintptr_t{0});
  }
}

// A line of the kernel's with the fields that the input says, as it is and with a few letters
// changed.
void CheckKernelsText(FuzzInput& input) {
  ProcMapping mapping;
  mapping.start = input.Take<uintptr_t>();
  mapping.end = input.Take<uintptr_t>();
  const auto permissions = input.Take<uint8_t>();
  mapping.readable = (permissions & 1) != 0;
  mapping.writable = (permissions & 2) != 0;
  mapping.executable = (permissions & 4) != 0;
  mapping.shared = (permissions & 8) != 0;
  mapping.offset = input.Take<uint64_t>();
  mapping.inode = input.Take<uint64_t>();
  const uint64_t kilobytes = input.Take<uint64_t>() / 1024;
  const size_t changes = input.Take<uint8_t>() % 4;
  std::string texts[] = {MappingText(mapping), SizeText("Private_Dirty", kilobytes)};
  for (std::string& text : texts) {
    for (size_t i = 0; i < changes; ++i) {
      text[input.Take<uint8_t>() % text.size()] = static_cast<char>(input.Take<uint8_t>());
    }
    CheckAnyText(text);
  }

  mapping.name = input.TakeUntil('\n');
  if (mapping.start <= mapping.end && !mapping.name.starts_with(' ')) CheckMapping(mapping);
  CheckSize("Private_Dirty", kilobytes);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  if (input.Pick({false, true})) CheckKernelsText(input);
  while (!input.empty()) CheckAnyText(input.TakeUntil('\n'));
  return 0;
}
