// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/faults/statistics.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

std::array<char, 64 << 10> stream_buffer;
std::array<char, 64 << 10> report;

// A stream that allocates nothing: standard output, with a buffer of our own, into a file in
// memory.
void ReadReport() {
  const int fd = memfd_create("malloc_info", MFD_CLOEXEC);
  PROGRAM_CHECK(fd >= 0 && dup2(fd, STDOUT_FILENO) >= 0);
  setvbuf(stdout, stream_buffer.data(), _IOFBF, stream_buffer.size());
  PROGRAM_CHECK(malloc_info(0, stdout) == 0);
  PROGRAM_CHECK(fflush(stdout) == 0);
  const ssize_t length = pread(fd, report.data(), report.size() - 1, 0);
  PROGRAM_CHECK(length > 0 && static_cast<size_t>(length) < report.size() - 1);
  report[static_cast<size_t>(length)] = '\0';
  close(fd);
}

// The number after `before`, searched from `text` on.
uint64_t NumberAfter(const char* text, const char* before) {
  const char* found = strstr(text, before);
  PROGRAM_CHECK(found != nullptr);
  return strtoull(found + strlen(before), nullptr, 10);
}

uint64_t ReportedBytes(const char* name) {
  std::array<char, 100> before;
  snprintf(before.data(), before.size(), "name=\"%s\" value=\"", name);
  return NumberAfter(report.data(), before.data());
}

void CheckReport(const struct mallinfo2& info) {
  PROGRAM_CHECK(ReportedBytes("in_use") == info.uordblks);
  const uint64_t parts = ReportedBytes("in_use") + ReportedBytes("page_heap_free") +
                         ReportedBytes("central_free") + ReportedBytes("transfer_free") +
                         ReportedBytes("thread_free") + ReportedBytes("cpu_free") +
                         ReportedBytes("metadata");
  PROGRAM_CHECK(parts == ReportedBytes("physical"));
  PROGRAM_CHECK(parts + ReportedBytes("page_heap_returned") + ReportedBytes("untouched") ==
                ReportedBytes("virtual"));
  PROGRAM_CHECK(ReportedBytes("virtual") == info.arena + ReportedBytes("metadata"));
}

void CheckSizeClasses(const struct mallinfo2& info) {
  uint64_t in_use = 0;
  uint64_t transfer_free = 0;
  uint64_t thread_free = 0;
  uint64_t cpu_free = 0;
  constexpr char kEntry[] = "<size bytes=\"";
  for (const char* entry = strstr(report.data(), kEntry); entry != nullptr;
       entry = strstr(entry + 1, kEntry)) {
    const uint64_t size = NumberAfter(entry, kEntry);
    in_use += size * NumberAfter(entry, " in_use=\"");
    transfer_free += size * NumberAfter(entry, " transfer_free=\"");
    thread_free += size * NumberAfter(entry, " thread_free=\"");
    cpu_free += size * NumberAfter(entry, " cpu_free=\"");
  }
  PROGRAM_CHECK(in_use <= info.uordblks);
  PROGRAM_CHECK(transfer_free == ReportedBytes("transfer_free"));
  PROGRAM_CHECK(thread_free == ReportedBytes("thread_free"));
  PROGRAM_CHECK(cpu_free == ReportedBytes("cpu_free"));
}

}  // namespace

void CheckStatistics() {
  struct mallinfo2 info;
  // The background thread may move memory before a reading, or during it. What is wrong by itself
  // is so in every attempt.
  constexpr int kAttempts = 100;
  int attempts = 0;
  do {
    info = mallinfo2();
    PROGRAM_CHECK(info.arena == info.uordblks + info.fsmblks + info.fordblks);
    ReadReport();
  } while (ReportedBytes("in_use") != info.uordblks && ++attempts < kAttempts);
  CheckReport(info);
  CheckSizeClasses(info);
}

size_t BytesInUse() { return mallinfo2().uordblks; }
size_t BytesMapped() { return mallinfo2().arena; }

}  // namespace tcmalloc::testing
