// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/transparent_hugepages.h"

#include <sys/prctl.h>

#include "system/first_line.h"
#include "system/number_text.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Calls f(line) with the first line of a file of the kernel; an empty line if it cannot be read.
template <typename F>
auto WithLine(const char* path, F f) {
  char buffer[128];
  return f(ReadFirstLine(path, buffer));
}

// 0 if `text` is no number.
uint64_t ToNumber(std::string_view text) {
  uint64_t number = 0;
  return ParseNumber(text, &number) ? number : 0;
}

HugepageMode ToMode(std::string_view line) {
  const std::string_view word = ParseChosenWord(line);
  if (word == "always") return HugepageMode::kAlways;
  return word == "madvise" ? HugepageMode::kMadvise : HugepageMode::kNever;
}

// Returns true if a page fault may wait for a hugepage, which it does not under "defer" and
// "never".
bool MayStall(std::string_view line) {
  const std::string_view word = ParseChosenWord(line);
  return word == "always" || word == "madvise" || word == "defer+madvise";
}

}  // namespace

std::string_view ParseChosenWord(std::string_view line) {
  const size_t begin = line.find('[');
  const size_t end = line.find(']');
  if (begin == std::string_view::npos || end == std::string_view::npos || end < begin) return {};
  return {line.data() + begin + 1, end - begin - 1};
}

const char* HugepageModeName(HugepageMode mode) {
  switch (mode) {
    case HugepageMode::kAlways:
      return "always";
    case HugepageMode::kMadvise:
      return "madvise";
    case HugepageMode::kNever:
      break;
  }
  return "never";
}

TransparentHugepages ReadTransparentHugepages() {
  TransparentHugepages setting;
  if (system_calls.prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) return setting;
  setting.mode = WithLine("/sys/kernel/mm/transparent_hugepage/enabled", ToMode);
  if (setting.mode == HugepageMode::kNever) return setting;
  setting.may_stall = WithLine("/sys/kernel/mm/transparent_hugepage/defrag", MayStall);
  setting.max_ptes_none =
      WithLine("/sys/kernel/mm/transparent_hugepage/khugepaged/max_ptes_none", ToNumber);
  setting.hugepage_bytes = WithLine("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size", ToNumber);
  return setting;
}

}  // namespace tcmalloc
