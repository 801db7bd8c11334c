// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/faults/mappings.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

std::array<char, 256 << 10> text;

void ReadMappings() {
  const int fd = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  PROGRAM_CHECK(fd >= 0);
  size_t length = 0;
  ssize_t count = 0;
  while ((count = read(fd, text.data() + length, text.size() - 1 - length)) > 0) {
    length += static_cast<size_t>(count);
  }
  PROGRAM_CHECK(count == 0 && length < text.size() - 1);
  text[length] = '\0';
  close(fd);
}

size_t MappingBytes(const char* line) {
  char* end = nullptr;
  const size_t begin = strtoull(line, &end, 16);
  return strtoull(end + 1, nullptr, 16) - begin;
}

}  // namespace

void CheckHeapMappings(size_t bytes) {
  ReadMappings();
  if (strstr(text.data(), "[anon:tcmalloc ") == nullptr) return;
  if (strstr(text.data(), "[heap]") != nullptr) return;
  size_t named = 0;
  for (char* line = strtok(text.data(), "\n"); line != nullptr; line = strtok(nullptr, "\n")) {
    if (strstr(line, "[anon:tcmalloc heap]") != nullptr) named += MappingBytes(line);
  }
  PROGRAM_CHECK(named == bytes);
}

}  // namespace tcmalloc::testing
