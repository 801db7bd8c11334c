// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// System calls that the kernel refuses from here on, by a seccomp filter.

#ifndef TCMALLOC_TESTS_STRESS_MODES_REFUSE_CALLS_H_
#define TCMALLOC_TESTS_STRESS_MODES_REFUSE_CALLS_H_

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

// The running thread, and what it starts, fail with `error` in system call `number` of this
// processor's own interface. False if the kernel has no filters.
inline bool RefuseCall(uint32_t number, uint32_t error) {
#if defined(__x86_64__)
  constexpr uint32_t kInterface = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
  constexpr uint32_t kInterface = AUDIT_ARCH_AARCH64;
#endif
  sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kInterface, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, number, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program = {sizeof(filter) / sizeof(filter[0]), filter};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_MODES_REFUSE_CALLS_H_
