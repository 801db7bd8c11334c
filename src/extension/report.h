// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Statistics as text, XML and JSON.

#ifndef TCMALLOC_EXTENSION_REPORT_H_
#define TCMALLOC_EXTENSION_REPORT_H_

#include "extension/text_sink.h"
#include "options/options.h"

namespace tcmalloc {

// The lines beginning with "MALLOC:" that gperftools prints and that programs scrape. Level 2 adds
// a line for each size class in use and for each length of free runs of pages.
void WriteTextReport(TextSink& sink, int level);

// The document that malloc_info promises: glibc's root element, with our totals and size classes.
void WriteXmlReport(TextSink& sink);

// One line, for tcm run.
void WriteJsonLine(TextSink& sink);

// What the environment asked to be printed when the process ends. Called once, at exit. The
// question is answered inline, so that a process that wants none does not touch the pages of the
// reports.
inline bool ExitReportsAreWanted(const Options& options) {
  return options.malloc_stats > 0 || !options.exit_report.empty();
}
void WriteExitReports();

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_REPORT_H_
