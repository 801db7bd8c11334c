// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lists of CPUs, compared with a parser that looks at one range at a time.

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/check.h"
#include "fuzz/fuzz_input.h"
#include "fuzz/fuzz_target.h"
#include "system/cpu_list.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

// No system has so many.
constexpr int kMostCpus = 1 << 16;

std::optional<int> Number(std::string_view text) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool whole = error == std::errc() && end == text.data() + text.size();
  if (!whole || text.front() == '-' || number >= kMostCpus) return std::nullopt;
  return number;
}

// One more than the last number of "a" or "a-b"; 0 if `range` is neither.
int EndOfRange(std::string_view range) {
  const size_t dash = range.find('-');
  const std::optional<int> first = Number(range.substr(0, dash));
  const std::optional<int> last =
      dash == std::string_view::npos ? first : Number(range.substr(dash + 1));
  return first.has_value() && last.has_value() && *first <= *last ? *last + 1 : 0;
}

int EndOfList(std::string_view list) {
  int end = 0;
  for (size_t comma = 0; comma != std::string_view::npos;) {
    comma = list.find(',');
    const int range_end = EndOfRange(list.substr(0, comma));
    if (range_end == 0) return 0;
    end = std::max(end, range_end);
    if (comma != std::string_view::npos) list.remove_prefix(comma + 1);
  }
  return end;
}

}  // namespace

TCM_FUZZ_TARGET(cpu_list_fuzz, MutateBytes)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  while (!input.empty()) {
    const std::string_view text = input.TakeUntil('\n');
    // Of exactly this size, so that a read beyond its end is noticed.
    const std::vector<char> exact(text.begin(), text.end());
    TCMALLOC_CHECK_EQ(EndOfCpuList({exact.data(), exact.size()}), EndOfList(text));
  }
  return 0;
}
