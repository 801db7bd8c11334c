// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Makes chosen system calls of the allocator fail.

#ifndef TCMALLOC_TESTS_FAKES_FAULT_INJECTION_H_
#define TCMALLOC_TESTS_FAKES_FAULT_INJECTION_H_

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include "system/system_calls.h"

namespace tcmalloc::testing {

// The calls that can fail, in the order of the table.
enum class SystemCall : uint8_t {
  kMmap,
  kMunmap,
  kMadvise,
  kProcessMadvise,
  kMprotect,
  kMremap,
  kSbrk,
  kPrctl,
  kOpen,
  kRead,
  kClose,
  kUnlink,
  kFtruncate,
  kFstatfs,
  kSchedGetaffinity,
  kGetrlimit,
  kFutex,
  kClockGettime,
  kRseq,
  kMembarrier,
  kRtSigaction,
  kRtSigprocmask,
  kClone,
  kWait4,
  kPthreadKeyCreate,
  kPthreadSetspecific,
  kPthreadCreate,
  kPthreadAtfork,
};
inline constexpr size_t kSystemCalls = 28;

enum class FaultMode : uint8_t {
  kNever,
  kOnce,    // call number k
  kFrom,    // call number k and all after it
  kEvery,   // call numbers k, 2k, 3k and so on
  kRandom,  // each call with probability 1/k, the same calls in each run with one thread
};

// Calls are numbered from 1, starting when the plan is set.
struct FaultPlan {
  FaultMode mode = FaultMode::kNever;
  uint64_t k = 1;
  int error = ENOMEM;
};

// Fails `call` by `plan` from now on, in place of its last plan. Thread safe.
void InjectFaults(SystemCall call, const FaultPlan& plan);
// Injects faults into calls of all kinds, numbered together.
void InjectFaultsEverywhere(const FaultPlan& plan);
// Takes all plans back and counts from zero again.
void ClearFaults();

// Sets plans from a text: one or more of "CALL:k=K:mode=MODE:errno=ERROR", separated by commas.
// CALL is a name as in SystemCalls, or "all"; MODE is once, from, every or random; ERROR is the
// name of an error or a number. What is left out is as in FaultPlan, with once for the mode. False,
// with nothing changed by the part that is wrong, where the text is not understood.
bool InjectFaultsFromText(std::string_view text);

// Calls and injected failures since the last ClearFaults.
uint64_t CallsSeen(SystemCall call);
uint64_t FaultsInjected();

// Decides about the next call. The first decision of a process sets the plans that
// TCMALLOC_TEST_FAULT describes. Returns the error to fail with, or 0. Used by the table below.
int NextFault(SystemCall call);

template <SystemCall kCall, auto kMember>
struct Faulty;

template <SystemCall kCall, typename Result, typename... Arguments,
          Result (*SystemCalls::*kMember)(Arguments...)>
struct Faulty<kCall, kMember> {
  static Result Call(Arguments... arguments) {
    const int error = NextFault(kCall);
    if (error == 0) return (real_system_calls.*kMember)(arguments...);
    if constexpr (kCall >= SystemCall::kPthreadKeyCreate) {
      return error;
    } else if constexpr (std::is_pointer_v<Result>) {
      errno = error;
      return reinterpret_cast<Result>(intptr_t{-1});
    } else {
      errno = error;
      return -1;
    }
  }
};

// The table whose calls fail by plan, and otherwise are the real ones.
constexpr SystemCalls FaultySystemCalls() {
  using enum SystemCall;
  return {
      .mmap = Faulty<kMmap, &SystemCalls::mmap>::Call,
      .munmap = Faulty<kMunmap, &SystemCalls::munmap>::Call,
      .madvise = Faulty<kMadvise, &SystemCalls::madvise>::Call,
      .process_madvise = Faulty<kProcessMadvise, &SystemCalls::process_madvise>::Call,
      .mprotect = Faulty<kMprotect, &SystemCalls::mprotect>::Call,
      .mremap = Faulty<kMremap, &SystemCalls::mremap>::Call,
      .sbrk = Faulty<kSbrk, &SystemCalls::sbrk>::Call,
      .prctl = Faulty<kPrctl, &SystemCalls::prctl>::Call,
      .open = Faulty<kOpen, &SystemCalls::open>::Call,
      .read = Faulty<kRead, &SystemCalls::read>::Call,
      .pread = [](int fd, void* buffer, size_t bytes,
                  off_t offset) { return real_system_calls.pread(fd, buffer, bytes, offset); },
      .getdents64 = [](int fd, void* buffer,
                       size_t bytes) { return real_system_calls.getdents64(fd, buffer, bytes); },
      .close = Faulty<kClose, &SystemCalls::close>::Call,
      .write = [](int fd, const void* bytes,
                  size_t count) { return real_system_calls.write(fd, bytes, count); },
      .unlink = Faulty<kUnlink, &SystemCalls::unlink>::Call,
      .rename = [](const char* from, const char* to) { return real_system_calls.rename(from, to); },
      .lstat = [](const char* path,
                  struct stat* information) { return real_system_calls.lstat(path, information); },
      .ftruncate = Faulty<kFtruncate, &SystemCalls::ftruncate>::Call,
      .fstatfs = Faulty<kFstatfs, &SystemCalls::fstatfs>::Call,
      .sched_getaffinity = Faulty<kSchedGetaffinity, &SystemCalls::sched_getaffinity>::Call,
      .getrlimit = Faulty<kGetrlimit, &SystemCalls::getrlimit>::Call,
      .futex = Faulty<kFutex, &SystemCalls::futex>::Call,
      .clock_gettime = Faulty<kClockGettime, &SystemCalls::clock_gettime>::Call,
      .rseq = Faulty<kRseq, &SystemCalls::rseq>::Call,
      .membarrier = Faulty<kMembarrier, &SystemCalls::membarrier>::Call,
      .rt_sigaction = Faulty<kRtSigaction, &SystemCalls::rt_sigaction>::Call,
      .rt_sigprocmask = Faulty<kRtSigprocmask, &SystemCalls::rt_sigprocmask>::Call,
      .tgkill = [](pid_t process, pid_t thread,
                   int signal) { return real_system_calls.tgkill(process, thread, signal); },
      .get_robust_list =
          [](pid_t thread, void** head, size_t* bytes) {
            return real_system_calls.get_robust_list(thread, head, bytes);
          },
      .clone = Faulty<kClone, &SystemCalls::clone>::Call,
      .wait4 = Faulty<kWait4, &SystemCalls::wait4>::Call,
      .exit = [](int status) { real_system_calls.exit(status); },
      .gettid = [] { return real_system_calls.gettid(); },
      .getauxval = [](unsigned long type) { return real_system_calls.getauxval(type); },
      .pthread_key_create = Faulty<kPthreadKeyCreate, &SystemCalls::pthread_key_create>::Call,
      .pthread_setspecific = Faulty<kPthreadSetspecific, &SystemCalls::pthread_setspecific>::Call,
      .pthread_create = Faulty<kPthreadCreate, &SystemCalls::pthread_create>::Call,
      .pthread_atfork = Faulty<kPthreadAtfork, &SystemCalls::pthread_atfork>::Call,
  };
}

// Installs that table for the life of a test, without any plan.
class ScopedFaultInjection {
 public:
  ScopedFaultInjection();
  ~ScopedFaultInjection();
  ScopedFaultInjection(const ScopedFaultInjection&) = delete;
  ScopedFaultInjection& operator=(const ScopedFaultInjection&) = delete;

 private:
  SystemCalls saved_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAULT_INJECTION_H_
