// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Restartable sequences: support by this system, and the running thread's area.
//
// docs/subsystems/rseq.md tells what each kernel and each libc changes.

#ifndef TCMALLOC_SYSTEM_RSEQ_H_
#define TCMALLOC_SYSTEM_RSEQ_H_

#include <cstdint>

#include "system/rseq_area.h"

namespace tcmalloc {

// The field of the area that numbers the caches.
enum class CpuIds : uint8_t {
  kMmCid,  // concurrency ids: as few as threads run at once, no more than usable CPUs
  kCpuId,
};

enum class RseqState : uint8_t {
  kUsable,
  kNoKernelSupport,
  kForbidden,  // refused to this process, or taken by a library that registered an area of its own
  kSelfTestFailed,  // did not abort a section, or the test could not run
  kNoMembarrier,
  kBadIds,
};

struct RseqSupport {
  RseqState state = RseqState::kNoKernelSupport;
  CpuIds ids = CpuIds::kCpuId;
  bool has_mm_cid = false;        // the kernel writes it
  bool own_registration = false;  // libc has none
  int id_count = 1;               // ids are below this; they may have gaps
};

// Finds out for the whole process; the caller keeps the result. Makes a child process for the test
// of the kernel and waits for it, with this thread's signals blocked meanwhile. Registers the
// process for FenceRseq and, if libc has not, the running thread. Does not allocate; keeps errno.
//
// The ids are the `preferred` ones, unless the kernel has only CPU numbers.
RseqSupport DetectRseq(CpuIds preferred = CpuIds::kMmCid);

// Returns one phrase for reports.
const char* RseqStateName(RseqState state);

// Returns the running thread's area, registered with the kernel; without libc's registration,
// registers the thread here. Null if the thread has none: it was refused, or thread-local storage
// does not exist yet, early in the start of the process. Only in the latter case may a later call
// find one. Keeps errno. Async-signal-safe.
//
// Not for a child that shares its parent's memory (vfork). It would find the parent's area, which
// the kernel no longer updates, and no section would ever be aborted.
RseqArea* CurrentRseqArea();

// Returns the number of the CPU on which the running thread runs, as the kernel wrote it to the
// thread's area, or 0 if it has none yet. Makes no system call. Async-signal-safe.
uint32_t CurrentCpuOrZero();

// Aborts the section in which any thread of the process is, on CPU number `cpu` (not a concurrency
// id) or, if that is negative, on all. A thread outside sections has by then done everything that
// comes before in program order, and sees everything that the caller did. Returns false if the
// kernel refuses; never after DetectRseq returned kUsable, unless the process was restricted since.
// Keeps errno.
bool FenceRseq(int cpu);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RSEQ_H_
