// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/cgroup_text.h"

#include <algorithm>

#include "system/cpu_list.h"
#include "system/number_text.h"
#include "system/text_field.h"

namespace tcmalloc {
namespace {

// More than any machine has, and less than the number that version 1 writes for no limit.
constexpr uint64_t kMostMemory = uint64_t{1} << 60;

bool IsOctal(char c) { return c >= '0' && c <= '7'; }

// Returns the character for which an escape at the front of `text` stands; -1 if there is none.
int Escaped(std::string_view text) {
  if (text.size() < 4 || text[0] != '\\' || text[1] > '3') return -1;
  if (!IsOctal(text[1]) || !IsOctal(text[2]) || !IsOctal(text[3])) return -1;
  return (text[1] - '0') * 64 + (text[2] - '0') * 8 + (text[3] - '0');
}

}  // namespace

// id:controllers:path
bool ParseCgroupMembership(std::string_view line, CgroupMembership* membership) {
  TakeField(&line, ':');
  membership->controllers = TakeField(&line, ':');
  membership->path = line;
  return line.starts_with('/');
}

// id parent major:minor root point options optional... - type source options
bool ParseMountLine(std::string_view line, MountLine* mount) {
  for (int skipped = 0; skipped < 3; ++skipped) TakeField(&line, ' ');
  mount->root = TakeField(&line, ' ');
  mount->point = TakeField(&line, ' ');
  if (!mount->root.starts_with('/') || !mount->point.starts_with('/')) return false;
  while (TakeField(&line, ' ') != "-") {
    if (line.empty()) return false;
  }
  mount->type = TakeField(&line, ' ');
  TakeField(&line, ' ');
  mount->options = line;
  return !mount->type.empty();
}

bool ListHolds(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    if (TakeField(&list, ',') == word) return true;
  }
  return false;
}

size_t Unescape(std::string_view path, char* out, size_t capacity) {
  size_t length = 0;
  while (!path.empty()) {
    if (length == capacity) return 0;
    const int escaped = Escaped(path);
    out[length++] = escaped < 0 ? path.front() : static_cast<char>(escaped);
    path.remove_prefix(escaped < 0 ? 1 : 4);
  }
  return length;
}

uint64_t ParseMemoryLimit(std::string_view line) {
  uint64_t bytes = 0;
  if (!ParseNumber(line, &bytes)) return kNoMemoryLimit;
  return bytes < kMostMemory ? bytes : kNoMemoryLimit;
}

int ParseCpuQuota(std::string_view quota, std::string_view period) {
  uint64_t share = 0;
  uint64_t whole = 0;
  if (!ParseNumber(quota, &share) || !ParseNumber(period, &whole)) return kNoCpuLimit;
  if (share == 0 || whole == 0) return kNoCpuLimit;
  const uint64_t cpus = (share - 1) / whole + 1;
  return cpus < kMostCpus ? static_cast<int>(cpus) : kNoCpuLimit;
}

int ParseCpuMax(std::string_view line) {
  const std::string_view quota = TakeField(&line, ' ');
  return ParseCpuQuota(quota, line);
}

uint32_t ParsePressure(std::string_view line) {
  constexpr std::string_view kStart = "some avg10=";
  if (!line.starts_with(kStart)) return 0;
  line.remove_prefix(kStart.size());
  uint64_t percent = 0;
  if (!TakeNumber(&line, &percent)) return 0;
  uint64_t hundredths = 0;
  if (line.starts_with('.')) {
    const size_t count = std::min(line.size() - 1, size_t{2});
    std::string_view digits(line.data() + 1, count);
    if (!TakeNumber(&digits, &hundredths)) return 0;
    if (count - digits.size() == 1) hundredths *= 10;
  }
  return static_cast<uint32_t>(std::min(percent, uint64_t{100}) * 100 + hundredths);
}

}  // namespace tcmalloc
