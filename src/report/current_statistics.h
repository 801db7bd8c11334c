// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Gathers the statistics of the allocator from every layer.

#ifndef TCMALLOC_REPORT_CURRENT_STATISTICS_H_
#define TCMALLOC_REPORT_CURRENT_STATISTICS_H_

#include <optional>

#include "page_heap/stats.h"
#include "report/statistics.h"

namespace tcmalloc {

// Takes each lock of the heap for a short time, for any number of spans. Call it inside a slow path
// that is not reentrant. Also fills `classes` and *pages unless they are null; *pages is that part
// of the statistics.
Statistics CurrentStatistics(AllSizeClassStatistics* classes = nullptr,
                             PageHeapStats* pages = nullptr);

// Statistics that are gathered once, when somebody first asks for them, so that figures of one
// moment can be compared. Used as CurrentStatistics is.
class Moment {
 public:
  const Statistics& statistics();
  // Takes less time, unless statistics() was called before: then they are of the same moment.
  const PageHeapStats& pages();

 private:
  std::optional<Statistics> statistics_;
  std::optional<PageHeapStats> pages_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_CURRENT_STATISTICS_H_
