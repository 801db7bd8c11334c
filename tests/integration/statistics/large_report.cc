// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The report of a large block names the functions of the program that asked for it. The environment
// sets the threshold.

#include <dlfcn.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kLarge = size_t{8} << 20;

std::string ReportOf(void* (*allocate)()) {
  int ends[2];
  PROGRAM_CHECK(pipe(ends) == 0);
  const int saved = dup(STDERR_FILENO);
  PROGRAM_CHECK(dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
  void* const block = allocate();
  PROGRAM_CHECK(dup2(saved, STDERR_FILENO) == STDERR_FILENO);
  close(ends[1]);
  char text[1000];
  const ssize_t size = read(ends[0], text, sizeof(text));
  PROGRAM_CHECK(block != nullptr && size >= 0);
  free(block);
  close(ends[0]);
  close(saved);
  return std::string(text, static_cast<size_t>(size));
}

// Requires that the first caller is in the same file as this function.
void RequireCaller(const std::string& report) {
  const size_t at = report.find(" @ 0x");
  PROGRAM_CHECK(report.starts_with("tcmalloc: large alloc ") && at != std::string::npos);
  const auto address = std::strtoull(report.c_str() + at + 3, nullptr, 16);
  Dl_info caller = {};
  Dl_info self = {};
  PROGRAM_CHECK(dladdr(reinterpret_cast<void*>(address), &caller) != 0);
  PROGRAM_CHECK(dladdr(reinterpret_cast<void*>(&RequireCaller), &self) != 0);
  PROGRAM_CHECK(strcmp(caller.dli_fname, self.dli_fname) == 0);
}

void Run() {
  RequireCaller(ReportOf([] { return malloc(kLarge); }));
  RequireCaller(ReportOf([] { return realloc(malloc(1), 2 * kLarge); }));
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
