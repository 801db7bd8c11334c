// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/faults/plan.h"

#include <cstddef>
#include <iterator>
#include <string_view>

namespace tcmalloc::testing {
namespace {

using enum Density;
using enum Start;
using enum Program;

constexpr uint64_t kMostK = 200;

// sbrk is tried where mmap fails, so that mmap has a second setting without it. What alignment
// skips below the break is lost, so that address space can be exact only there.
constexpr Kind kKinds[] = {
    {.call = "mmap", .density = kEveryK, .small_steps = true},
    {.call = "mmap",
     .density = kEveryK,
     .variable = "TCMALLOC_SKIP_SBRK=1",
     .small_steps = true,
     .exact_space = true},
    {.call = "mmap",
     .density = kSomeK,
     .start = kMain,
     .variable = "TCMALLOC_SKIP_SBRK=1",
     .exact_space = true},
    {.call = "madvise", .density = kEveryK, .exact_space = true},
    {.call = "madvise",
     .density = kSomeK,
     .start = kMain,
     .variable = "TCMALLOC_AGGRESSIVE_DECOMMIT=1",
     .exact_space = true},
    {.call = "process_madvise", .density = kSomeK, .exact_space = true},
    {.call = "all", .density = kSomeK, .small_steps = true, .quiet_fork = true},
    {.call = "all", .density = kSomeK, .start = kMain, .quiet_fork = true},
    // Memory that lies where the kernel chose has to be cut to its alignment.
    {.call = "munmap",
     .density = kSomeK,
     .companion = "mmap:k=2:mode=every:errno=EAGAIN",
     .small_steps = true},
    {.call = "sbrk", .density = kSomeK, .variable = "TCMALLOC_SKIP_MMAP=1", .small_steps = true},
    {.call = "prctl", .density = kFewK, .small_steps = true},
    {.call = "open", .density = kFewK, .program = kAllocatesInResolver},
    {.call = "read", .density = kFewK, .program = kAllocatesInResolver},
    {.call = "close", .density = kFewK, .program = kAllocatesInResolver},
    {.call = "open", .density = kFewK, .memfs = true},
    {.call = "unlink", .density = kFewK, .memfs = true},
    {.call = "ftruncate", .density = kSomeK, .memfs = true, .small_steps = true},
    {.call = "fstatfs", .density = kFewK, .memfs = true},
    {.call = "mmap", .density = kSomeK, .memfs = true, .small_steps = true},
    {.call = "madvise", .density = kSomeK, .memfs = true},
    {.call = "getrlimit", .density = kFewK},
    {.call = "clock_gettime", .density = kSomeK},
    {.call = "futex", .density = kSomeK, .variable = "TCMALLOC_BACKGROUND=1"},
    {.call = "pthread_create", .density = kFewK, .variable = "TCMALLOC_BACKGROUND=1"},
    {.call = "pthread_key_create", .density = kFewK},
    {.call = "pthread_setspecific", .density = kSomeK},
    {.call = "pthread_setspecific", .density = kSomeK, .start = kMain},
    {.call = "pthread_atfork", .density = kFewK, .quiet_fork = true},
    {.call = "mprotect", .density = kFewK, .reached = false},
    {.call = "mremap", .density = kFewK, .reached = false},
    {.call = "sched_getaffinity", .density = kFewK},
    {.call = "rseq", .density = kFewK, .reached = false},
    {.call = "membarrier", .density = kFewK},
    {.call = "rt_sigaction", .density = kFewK, .reached = false},
    {.call = "rt_sigprocmask", .density = kFewK},
    {.call = "clone", .density = kFewK, .reached = false},
    {.call = "wait4", .density = kFewK, .reached = false},
};

// The last one in the full sweep only.
constexpr const char* kModes[] = {"once", "from", "every", "random"};
constexpr const char* kErrors[] = {"ENOMEM", "EAGAIN", "EINVAL", "EPERM", "ENOSYS"};

constexpr uint64_t kFew = 8;

// All of the few, then fewer and fewer.
uint64_t NextOfSome(uint64_t k) { return k < kFew ? k + 1 : k + (k + 2) / 3; }

std::vector<uint64_t> ValuesOfK(Density density) {
  std::vector<uint64_t> values;
  const uint64_t most = density == kFewK ? kFew : kMostK;
  for (uint64_t k = 1; k <= most; k = density == kEveryK ? k + 1 : NextOfSome(k)) {
    values.push_back(k);
  }
  return values;
}

std::string PlanText(const Kind& kind, uint64_t k, const char* mode, const char* error) {
  std::string text =
      std::string(kind.call) + ":k=" + std::to_string(k) + ":mode=" + mode + ":errno=" + error;
  if (*kind.companion != '\0') text += std::string(",") + kind.companion;
  return text;
}

Density DensityIn(Extent extent, Density usual) {
  if (extent == Extent::kFull) return kEveryK;
  return extent == Extent::kSparse && usual == kEveryK ? kSomeK : usual;
}

void PlanKind(const Kind& kind, Extent extent, std::vector<Run>* runs) {
  const bool full = extent == Extent::kFull;
  const size_t modes = std::size(kModes) - (full ? 0 : 1);
  for (const uint64_t k : ValuesOfK(DensityIn(extent, kind.density))) {
    for (size_t mode = 0; mode < modes; ++mode) {
      // The usual sweep takes the errors in turn; another one for each mode.
      const size_t first = full ? 0 : (k + mode) % std::size(kErrors);
      const size_t count = full ? std::size(kErrors) : 1;
      for (size_t i = 0; i < count; ++i) {
        runs->push_back({&kind, PlanText(kind, k, kModes[mode], kErrors[first + i]),
                         std::string_view(kModes[mode]) == "every"});
      }
    }
  }
}

}  // namespace

std::span<const Kind> Kinds() { return kKinds; }

std::vector<Run> PlanSweep(Extent extent) {
  std::vector<Run> runs;
  for (const Kind& kind : kKinds) PlanKind(kind, extent, &runs);
  return runs;
}

}  // namespace tcmalloc::testing
