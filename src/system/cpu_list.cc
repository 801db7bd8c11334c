// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/cpu_list.h"

#include <algorithm>
#include <cstdint>

#include "system/number_text.h"

namespace tcmalloc {
namespace {

// Removes the number of a CPU from the front of the list; -1 if there is none.
int TakeCpu(std::string_view* list) {
  uint64_t number = 0;
  return TakeNumber(list, &number) && number < kMostCpus ? static_cast<int>(number) : -1;
}

struct CpuRange {
  int first = 0;
  int end = 0;  // 0: no range
};

// Removes "a" or "a-b" from the front of the list.
CpuRange TakeRange(std::string_view* list) {
  const int first = TakeCpu(list);
  if (first < 0 || !list->starts_with('-')) return {first, first + 1};
  list->remove_prefix(1);
  const int last = TakeCpu(list);
  return {first, last < first ? 0 : last + 1};
}

// Calls add(CpuRange) for each range. Returns false if `list` is not a list.
template <typename F>
bool ForEachRange(std::string_view list, F add) {
  while (true) {
    const CpuRange range = TakeRange(&list);
    if (range.end == 0) return false;
    add(range);
    if (list.empty()) return true;
    if (!list.starts_with(',')) return false;
    list.remove_prefix(1);
  }
}

}  // namespace

int EndOfCpuList(std::string_view list) {
  int end = 0;
  const bool valid = ForEachRange(list, [&](CpuRange range) { end = std::max(end, range.end); });
  return valid ? end : 0;
}

// Kernels write no number twice, but any text is handled.
int CountOfCpuList(std::string_view list) {
  int count = 0;
  const bool valid = ForEachRange(
      list, [&](CpuRange range) { count = std::min(count + range.end - range.first, kMostCpus); });
  return valid ? count : 0;
}

int BitsOfCpuMask(std::string_view mask) {
  int digits = 0;
  bool after_digit = false;
  for (const char c : mask) {
    const bool digit = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
    if (!digit && (c != ',' || !after_digit)) return 0;
    after_digit = digit;
    digits += digit ? 1 : 0;
  }
  return after_digit && digits <= kMostCpus / 4 ? digits * 4 : 0;
}

}  // namespace tcmalloc
