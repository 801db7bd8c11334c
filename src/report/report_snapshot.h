// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Everything that a report prints, as of one moment.

#ifndef TCMALLOC_REPORT_REPORT_SNAPSHOT_H_
#define TCMALLOC_REPORT_REPORT_SNAPSHOT_H_

#include <cstdint>
#include <span>
#include <string_view>

#include "base/message.h"
#include "page_heap/free_runs.h"
#include "page_heap/huge/huge_page_stats.h"
#include "report/statistics.h"

namespace tcmalloc {

enum class Detail : bool { kTotals, kAll };

// The data that only reports with all details need.
struct ReportDetails {
  AllSizeClassStatistics classes;
  FreeRunCounts free_runs;
};

// Room for ReportDetails in pages from the system, all zero. It is not on the stack, which may be
// small, and not in the heap, whose figures it would change.
class ReportDetailsHolder {
 public:
  explicit ReportDetailsHolder(Detail detail);
  ~ReportDetailsHolder();
  ReportDetailsHolder(const ReportDetailsHolder&) = delete;
  ReportDetailsHolder& operator=(const ReportDetailsHolder&) = delete;

  // Returns null if no details are wanted or no memory can be had; then there are totals only.
  ReportDetails* get() const { return details_; }

 private:
  ReportDetails* details_ = nullptr;
};

struct ReportSnapshot {
  explicit ReportSnapshot(Detail detail) : holder(detail) {}
  const ReportDetails* details() const { return holder.get(); }

  Statistics statistics;
  ReportDetailsHolder holder;
  // The front end and the page heap that run, and the reasons. The words need no escapes in XML and
  // JSON: they have neither quotes nor angle brackets.
  std::string_view front_end;
  Message front_end_reason;
  std::string_view page_heap;
  std::string_view page_heap_reason;
  bool uses_hugepages = false;
  HugePageStats hugepages;  // if it does
};

// Takes the figures without printing, which may allocate. Returns false, with nothing done, in a
// signal handler that interrupted the slow path.
[[nodiscard]] bool TakeSnapshot(ReportSnapshot* snapshot);

// A figure about the hugepages of the huge page heap.
struct HugepageFigure {
  std::string_view name;
  uint64_t (*value)(const HugePageStats&);
  std::string_view meaning;
};
std::span<const HugepageFigure> HugepageFigures();

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_REPORT_SNAPSHOT_H_
