// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Everything that a report prints, as of one moment.

#ifndef TCMALLOC_EXTENSION_REPORT_SNAPSHOT_H_
#define TCMALLOC_EXTENSION_REPORT_SNAPSHOT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "base/message.h"
#include "extension/statistics.h"
#include "page_heap/free_runs.h"
#include "page_heap/huge/huge_page_stats.h"

namespace tcmalloc {

enum class Detail : bool { kTotals, kAll };

struct ReportSnapshot {
  Statistics statistics;
  FreeRunCounts free_runs;  // empty unless all details were wanted
  // Which front end and page heap run, and why. The words need no escapes in XML and JSON: they
  // have neither quotes nor angle brackets.
  std::string_view front_end;
  Message front_end_reason;
  std::string_view page_heap;
  std::string_view page_heap_reason;
  bool uses_hugepages = false;
  HugePageStats hugepages;  // if it does
};

// Printing is left for later: it may allocate. False, and nothing done, in a signal handler that
// interrupted the slow path.
[[nodiscard]] bool TakeSnapshot(Detail detail, ReportSnapshot* snapshot);

// What the huge page heap made of hugepages.
struct HugepageFigure {
  std::string_view name;
  uint64_t (*value)(const HugePageStats&);
  std::string_view meaning;
};
std::span<const HugepageFigure> HugepageFigures();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_REPORT_SNAPSHOT_H_
