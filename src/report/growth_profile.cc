// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/growth_profile.h"

#include <fcntl.h>
#include <sys/types.h>

#include <cstddef>
#include <string_view>

#include "allocator/slow_path.h"
#include "base/message.h"
#include "heap/heap.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Formats objects and bytes twice: the present ones, and those since the start.
Message Counts(const HeapGrowth& growth) {
  Message counts;
  for (const char* between : {"", " ["}) {
    counts << between << growth.count << ": " << growth.bytes;
  }
  counts << "] @";
  return counts;
}

void CopyFile(const char* path, TextSink& sink) {
  const int fd = system_calls.open(path, O_RDONLY | O_CLOEXEC, 0);
  if (fd < 0) return;
  char buffer[1024];
  for (ssize_t n = 0; (n = system_calls.read(fd, buffer, sizeof(buffer))) > 0;) {
    sink.Write({buffer, static_cast<size_t>(n)});
  }
  system_calls.close(fd);
}

}  // namespace

HeapGrowth CurrentHeapGrowth() {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return {};
  const PageHeapStats pages = heap.page_heap().stats();
  return {.count = pages.growths, .bytes = pages.system.bytes()};
}

void WriteGrowthProfile(TextSink& sink) {
  const Message counts = Counts(CurrentHeapGrowth());
  sink.WriteLine(Message() << "heap profile: " << counts.view() << " growth");
  sink.WriteLine(Message() << counts.view());
  sink.Write("\nMAPPED_LIBRARIES:\n");
  CopyFile("/proc/self/maps", sink);
}

}  // namespace tcmalloc
