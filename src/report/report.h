// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Statistics as text, XML and JSON. In a signal handler that interrupted the allocator there are
// none: the text and the documents are then empty.

#ifndef TCMALLOC_REPORT_REPORT_H_
#define TCMALLOC_REPORT_REPORT_H_

#include "options/options.h"
#include "report/report_snapshot.h"
#include "report/text_sink.h"

namespace tcmalloc {

// Writes the lines beginning with "MALLOC:" that gperftools prints and that programs scrape. Level
// 2 adds lines for each size class in use and for each length of free runs of pages.
void WriteTextReport(TextSink& sink, int level);

// Writes the document that malloc_info promises: glibc's root element, with our totals, size
// classes and free runs of pages.
void WriteXmlReport(TextSink& sink);

// Writes an object on one line, with its newline. The totals alone fit into kMostJsonTotals bytes.
void WriteJsonReport(TextSink& sink, Detail detail);
inline constexpr size_t kMostJsonTotals = 4096;

// Returns true if the environment asked for a report when the process ends. Called once, at exit.
// The question is answered inline, so that a process that wants no report does not touch the pages
// of the reports.
inline bool ExitReportsAreWanted(const Options& options) {
  return options.malloc_stats > 0 || !options.exit_report.empty() || !options.heap_profile.empty();
}
void WriteExitReports();

}  // namespace tcmalloc

#endif  // TCMALLOC_REPORT_REPORT_H_
