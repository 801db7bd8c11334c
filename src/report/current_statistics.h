// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Gathers the statistics of the allocator from every layer.

#ifndef TCMALLOC_REPORT_CURRENT_STATISTICS_H_
#define TCMALLOC_REPORT_CURRENT_STATISTICS_H_

#include "report/statistics.h"

namespace tcmalloc {

// Takes each lock of the heap for a short time, for any number of spans. Call it inside a slow path
// that is not reentrant. Also fills `classes` unless it is null.
Statistics CurrentStatistics(AllSizeClassStatistics* classes = nullptr);

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_CURRENT_STATISTICS_H_
