// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The layout of the area that restartable sequences are announced in, and their signature.

#ifndef TCMALLOC_SYSTEM_RSEQ_AREA_H_
#define TCMALLOC_SYSTEM_RSEQ_AREA_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// The area that the kernel shares with one thread, as it lays it out. The kernel alone writes the
// fields, except for rseq_cs, which only the thread itself sets: newer kernels kill a process that
// writes another one.
struct alignas(32) RseqArea {
  uint32_t cpu_id_start = 0;
  uint32_t cpu_id = 0;  // negative as a signed number where libc's registration failed
  uint64_t rseq_cs = 0;
  uint32_t flags = 0;
  uint32_t node_id = 0;
  uint32_t mm_cid = 0;
  uint32_t padding = 0;
};
static_assert(sizeof(RseqArea) == 32);
static_assert(offsetof(RseqArea, cpu_id) == 4 && offsetof(RseqArea, rseq_cs) == 8 &&
              offsetof(RseqArea, mm_cid) == 24);

// Stands before every abort handler. The value is libc's, so that sections work on its registration
// too; as an instruction it is an undefined one.
#if defined(__x86_64__)
inline constexpr uint32_t kRseqSignature = 0x53053053;
#elif defined(__aarch64__)
inline constexpr uint32_t kRseqSignature = 0xd428bc00;
#endif

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RSEQ_AREA_H_
