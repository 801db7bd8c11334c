// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "base/message.h"
#include "heap/heap.h"
#include "heap/observer.h"
#include "report/report.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

void PrintAtExit(int level) {
  FileSink sink(STDERR_FILENO);
  WriteTextReport(sink, level);
}

// Writes the line in one piece, because other processes append to the same file. Does not wait for
// the reader of a FIFO.
void AppendJsonLine(const char* path) {
  const int fd = system_calls.open(
      path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NOFOLLOW | O_NOCTTY | O_NONBLOCK, 0);
  if (fd < 0) {
    Message message;
    message << "TCMALLOC_EXIT_REPORT=";
    message.AppendQuoted(path) << " cannot be opened (errno " << errno << "); writing no report";
    Warn(message);
    return;
  }
  char line[kMostJsonTotals];
  BufferSink buffer(line, sizeof(line));
  WriteJsonReport(buffer, Detail::kTotals);
  FileSink(fd).Write(line);
  system_calls.close(fd);
}

}  // namespace

void WriteExitReports() {
  const Options& options = heap.options();
  WriteExitProfiles();
  if (options.malloc_stats > 0) PrintAtExit(static_cast<int>(options.malloc_stats));
  if (!options.exit_report.empty()) AppendJsonLine(options.exit_report.text);
}

}  // namespace tcmalloc
