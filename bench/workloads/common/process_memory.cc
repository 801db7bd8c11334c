// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#include "common/process_memory.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

#include "common/block.h"

namespace tcmalloc::bench {
namespace {

// Reads the beginning of a file of /proc with plain system calls, because stdio would allocate a
// buffer and so change what is being measured. False if there is no such file.
template <size_t kSize>
bool ReadFile(const char* path, char (&text)[kSize]) {
  const int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return false;
  const ssize_t length = read(file, text, kSize - 1);
  close(file);
  if (length <= 0) return false;
  text[length] = '\0';
  return true;
}

// The value of a line such as "Rss:      1234 kB", in bytes.
uint64_t Field(const char* text, const char* name) {
  const char* field = std::strstr(text, name);
  if (field == nullptr) Fail("/proc has no %s", name);
  return std::strtoull(field + std::strlen(name), nullptr, 10) * 1024;
}

}  // namespace

uint64_t ResidentBytes() {
  char text[4096];
  if (ReadFile("/proc/self/smaps_rollup", text)) return Field(text, "\nRss:");
  if (!ReadFile("/proc/self/statm", text)) Fail("cannot read /proc/self/statm");
  const char* resident = std::strchr(text, ' ');
  if (resident == nullptr) Fail("/proc/self/statm has no second field");
  return std::strtoull(resident, nullptr, 10) * static_cast<uint64_t>(sysconf(_SC_PAGESIZE));
}

uint64_t HugePageBytes() {
  char text[4096];
  return ReadFile("/proc/self/smaps_rollup", text) ? Field(text, "\nAnonHugePages:") : 0;
}

uint64_t PeakResidentBytes() {
  char text[4096];
  if (!ReadFile("/proc/self/status", text)) Fail("cannot read /proc/self/status");
  return Field(text, "\nVmHWM:");
}

}  // namespace tcmalloc::bench
