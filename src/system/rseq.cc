// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/rseq.h"

#include <linux/membarrier.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <iterator>

#include "system/rseq_self_test.h"
#include "system/system_calls.h"
#include "system/topology.h"

// libc's registration: where each thread's area lies from the thread pointer, and its size, 0 where
// it made none. Missing before glibc 2.35 and in other libraries.
extern "C" {
extern const ptrdiff_t __rseq_offset __attribute__((weak));
extern const unsigned __rseq_size __attribute__((weak));
}

namespace tcmalloc {
namespace {

// Not in the headers of every libc.
constexpr unsigned long kAtRseqFeatureSize = 27;
constexpr size_t kEndOfMmCid = offsetof(RseqArea, mm_cid) + sizeof(RseqArea::mm_cid);

// glibc keeps a thread's storage until the kernel has forgotten the thread. musl's detached threads
// unmap it themselves and then continue for some instructions, during which the kernel's next
// update of an area in it would kill the process.
#if defined(__GLIBC__)
constexpr bool kStorageOutlivesThread = true;
#else
constexpr bool kStorageOutlivesThread = false;
#endif

enum class OwnArea : uint8_t {
  kNoStorage,  // the initial image is not in place; it is going to overwrite what is there
  kNew,
  kRegistered,
  kRefused,
};

// Zero until the kernel writes it: thread-local storage that is initialized comes before storage
// that is not, so the many bytes with the large alignment leave one gap and not two.
constinit thread_local RseqArea own_area __attribute__((tls_model("initial-exec")));
constinit thread_local OwnArea own_area_state __attribute__((tls_model("initial-exec"))) =
    OwnArea::kNew;

class ErrnoKeeper {
 public:
  ErrnoKeeper() : saved_(errno) {}
  ~ErrnoKeeper() { errno = saved_; }
  ErrnoKeeper(const ErrnoKeeper&) = delete;
  ErrnoKeeper& operator=(const ErrnoKeeper&) = delete;

 private:
  int saved_;
};

bool IsRegisteredByLibc() { return &__rseq_size != nullptr && __rseq_size != 0; }

RseqArea* LibcArea() {
  return reinterpret_cast<RseqArea*>(static_cast<char*>(__builtin_thread_pointer()) +
                                     __rseq_offset);
}

// The kernel says busy where this very area is registered: by the code that this handler of a
// signal has interrupted.
bool RegisterOwnArea() {
  const ErrnoKeeper keeper;
  if (!kStorageOutlivesThread) return false;
  return system_calls.rseq(&own_area, sizeof(own_area), 0, kRseqSignature) == 0 || errno == EBUSY;
}

// Returns true if libc's registration of this thread succeeded.
bool IsRegistered(const RseqArea& area) {
  return static_cast<int32_t>(__atomic_load_n(&area.cpu_id, __ATOMIC_RELAXED)) >= 0;
}

// The kernel writes as many fields as it knows into the 32 bytes that any registration has at
// least; some versions of glibc claim 20 of them and still register 32.
bool HasMmCid() { return system_calls.getauxval(kAtRseqFeatureSize) >= kEndOfMmCid; }

bool RegisterForFences() {
  return system_calls.membarrier(MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED_RSEQ, 0, 0) == 0;
}

// If thread-local storage does not exist yet, the kernel's future answer is unknown.
bool IsThreadRefused() {
  return CurrentRseqArea() == nullptr &&
         (IsRegisteredByLibc() || own_area_state != OwnArea::kNoStorage);
}

RseqState Assess(const RseqSupport& support) {
  const RseqTestResult test = TestRseq();
  if (test.outcome == RseqTestOutcome::kRefused) {
    return test.error == ENOSYS ? RseqState::kNoKernelSupport : RseqState::kForbidden;
  }
  if (test.outcome == RseqTestOutcome::kFailed) return RseqState::kSelfTestFailed;
  const auto end = static_cast<uint32_t>(support.id_count);
  if (test.cpu_id >= end) return RseqState::kBadIds;
  if (support.ids == CpuIds::kMmCid && test.mm_cid >= end) return RseqState::kBadIds;
  if (IsThreadRefused()) return RseqState::kForbidden;
  return RegisterForFences() ? RseqState::kUsable : RseqState::kNoMembarrier;
}

}  // namespace

RseqSupport DetectRseq(CpuIds preferred) {
  const ErrnoKeeper keeper;
  const bool has_mm_cid = HasMmCid();
  RseqSupport support = {.ids = has_mm_cid ? preferred : CpuIds::kCpuId,
                         .has_mm_cid = has_mm_cid,
                         .own_registration = !IsRegisteredByLibc(),
                         .id_count = std::max(PossibleCpus(), EndOfCpuIds())};
  support.state = Assess(support);
  return support;
}

const char* RseqStateName(RseqState state) {
  switch (state) {
    case RseqState::kUsable:
      return "restartable sequences work";
    case RseqState::kNoKernelSupport:
      return "the kernel has no restartable sequences";
    case RseqState::kForbidden:
      return "restartable sequences are refused to this process";
    case RseqState::kSelfTestFailed:
      return "restartable sequences failed their test at the start";
    case RseqState::kNoMembarrier:
      return "the kernel cannot abort restartable sequences of other CPUs";
    case RseqState::kBadIds:
      return "the kernel's CPU numbers are not below the number of CPUs";
  }
  return "unknown";
}

RseqArea* CurrentRseqArea() {
  if (IsRegisteredByLibc()) return IsRegistered(*LibcArea()) ? LibcArea() : nullptr;
  if (own_area_state == OwnArea::kNew) {
    own_area_state = RegisterOwnArea() ? OwnArea::kRegistered : OwnArea::kRefused;
  }
  return own_area_state == OwnArea::kRegistered ? &own_area : nullptr;
}

uint32_t CurrentCpuOrZero() {
  const RseqArea& area = IsRegisteredByLibc() ? *LibcArea() : own_area;
  return __atomic_load_n(&area.cpu_id_start, __ATOMIC_RELAXED);
}

bool FenceRseq(int cpu) {
  const ErrnoKeeper keeper;
  const unsigned flags = cpu >= 0 ? MEMBARRIER_CMD_FLAG_CPU : 0;
  return system_calls.membarrier(MEMBARRIER_CMD_PRIVATE_EXPEDITED_RSEQ, flags, cpu) == 0;
}

}  // namespace tcmalloc
