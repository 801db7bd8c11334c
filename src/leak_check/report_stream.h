// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Where reports go.

#ifndef TCMALLOC_LEAK_CHECK_REPORT_STREAM_H_
#define TCMALLOC_LEAK_CHECK_REPORT_STREAM_H_

#include <sys/stat.h>

namespace tcmalloc {

// Stderr, or a copy of the descriptor if the program has closed its own. Many programs do so before
// they end, to notice errors of writing.
class ReportStream {
 public:
  constexpr ReportStream() = default;
  ReportStream(const ReportStream&) = delete;
  ReportStream& operator=(const ReportStream&) = delete;

  // Makes the copy, which other programs do not inherit. Called once, before main. Without room for
  // a descriptor there is no copy.
  void Keep();
  // Closes the copy. For a child of fork: whoever reads its stderr would wait for it otherwise.
  void Drop();
  // Returns the descriptor to write to.
  int descriptor() const;

 private:
  bool IsCopy() const;

  int copy_ = -1;
  struct stat stream_ = {};  // tells if the number is still that of the copy
};

extern constinit ReportStream report_stream;

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_REPORT_STREAM_H_
