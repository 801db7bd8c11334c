// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Fills glibc's structures with the statistics.

#ifndef TCMALLOC_REPORT_MALLINFO_H_
#define TCMALLOC_REPORT_MALLINFO_H_

#include <string_view>

#include "allocator/slow_path.h"
#include "report/current_statistics.h"
#include "report/fields.h"

namespace tcmalloc {

// A member of `Info`, struct mallinfo or mallinfo2, to which a figure adds.
template <typename Info>
struct MallinfoPart {
  decltype(Info::arena) Info::* to;
  std::string_view field;
};

template <typename Info>
inline constexpr MallinfoPart<Info> kMallinfoParts[] = {
    {&Info::arena, "mapped_bytes"},      {&Info::uordblks, "in_use"},
    {&Info::fsmblks, "thread_free"},     {&Info::fsmblks, "cpu_free"},
    {&Info::fsmblks, "transfer_free"},   {&Info::fsmblks, "central_free"},
    {&Info::fordblks, "page_heap_free"}, {&Info::fordblks, "page_heap_returned"},
    {&Info::fordblks, "untouched"},      {&Info::keepcost, "page_heap_free"},
};

// Returns zeros in a signal handler that interrupted the slow path. The older structure has members
// of 32 bits, in which large numbers wrap.
template <typename Info>
Info MakeMallinfo() {
  Info info = {};
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return info;
  const Statistics statistics = CurrentStatistics();
  for (const MallinfoPart<Info>& part : kMallinfoParts<Info>) {
    const auto value =
        static_cast<uint64_t>(info.*part.to) + FindField(part.field)->value(statistics);
    info.*part.to = static_cast<decltype(Info::arena)>(value);
  }
  return info;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_MALLINFO_H_
