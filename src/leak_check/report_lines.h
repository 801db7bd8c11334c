// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The lines of a report.

#ifndef TCMALLOC_LEAK_CHECK_REPORT_LINES_H_
#define TCMALLOC_LEAK_CHECK_REPORT_LINES_H_

#include <cstddef>

#include "base/message.h"

namespace tcmalloc {

// Writes lines to the report stream, as many at a time as fit into its buffer. The end of the
// object writes the last ones. For one thread.
class ReportLines {
 public:
  ReportLines() = default;
  ~ReportLines() { Flush(); }
  ReportLines(const ReportLines&) = delete;
  ReportLines& operator=(const ReportLines&) = delete;

  void Print(const Message& line);

 private:
  // The bytes that a pipe takes as a whole, so that the lines of two processes do not mix within
  // one.
  static constexpr size_t kCapacity = 4096;
  static_assert(Message::kCapacity < kCapacity);

  void Flush();

  char buffer_[kCapacity];
  size_t size_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_REPORT_LINES_H_
