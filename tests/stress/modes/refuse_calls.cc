// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs a program to which the kernel refuses system calls.
// Usage: refuse_calls ERROR CALL[,CALL] PROGRAM [ARGUMENT...]
// ERROR is ENOSYS or EPERM; CALL is in the table below. Ends with 77 where there are no filters.

#include "stress/modes/refuse_calls.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <string_view>

namespace {

constexpr int kSkipped = 77;

struct Call {
  std::string_view name;
  long number;
};

constexpr Call kCalls[] = {{"rseq", SYS_rseq},       {"membarrier", SYS_membarrier},
                           {"ptrace", SYS_ptrace},   {"process_vm_readv", SYS_process_vm_readv},
                           {"tgkill", SYS_tgkill},   {"get_robust_list", SYS_get_robust_list},
                           {"pread64", SYS_pread64}, {"clone", SYS_clone}};

int Usage() {
  std::fputs("usage: refuse_calls ENOSYS|EPERM CALL[,...] PROGRAM ...\n", stderr);
  return 2;
}

bool IsNamed(std::string_view calls, std::string_view name) {
  while (!calls.empty()) {
    const size_t end = calls.find(',');
    if (calls.substr(0, end) == name) return true;
    calls = end == calls.npos ? std::string_view() : calls.substr(end + 1);
  }
  return false;
}

bool RefuseNamed(std::string_view calls, uint32_t error) {
  bool refused = true;
  for (const Call& call : kCalls) {
    if (!IsNamed(calls, call.name)) continue;
    refused = refused && tcmalloc::testing::RefuseCall(static_cast<uint32_t>(call.number), error);
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
