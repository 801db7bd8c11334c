// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a program to which the kernel refuses system calls.
// Usage: refuse_calls ERROR CALL[,CALL] PROGRAM [ARGUMENT...]
// ERROR is ENOSYS or EPERM; CALL is rseq or membarrier. Ends with 77 where there are no filters.

#include "stress/modes/refuse_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

constexpr int kSkipped = 77;

int Usage() {
  std::fprintf(stderr, "usage: refuse_calls ENOSYS|EPERM rseq|membarrier[,...] PROGRAM ...\n");
  return 2;
}

bool RefuseNamed(std::string_view calls, uint32_t error) {
  bool refused = true;
  if (calls.find("rseq") != calls.npos) {
    refused = tcmalloc::testing::RefuseCall(SYS_rseq, error);
  }
  if (calls.find("membarrier") != calls.npos) {
    refused = refused && tcmalloc::testing::RefuseCall(SYS_membarrier, error);
  }
  return refused;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return Usage();
  const std::string_view error = argv[1];
  if (error != "ENOSYS" && error != "EPERM") return Usage();
  if (!RefuseNamed(argv[2], error == "ENOSYS" ? ENOSYS : EPERM)) return kSkipped;
  execv(argv[3], argv + 3);
  std::perror(argv[3]);
  return 2;
}
