// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "guarded/fault_handler.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/spin_lock.h"
#include "guarded/fault_report.h"
#include "guarded/guarded_blocks.h"
#include "heap/heap.h"
#include "system/system_calls.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

using Action = struct sigaction;
using Handler = void (*)(int signal, siginfo_t* info, void* context);

// A handler goes on to what the program had when that handler was put in place. So each place has a
// function of its own: the program's handler may go on to the one that it found, which is an
// earlier one of these, and no two of them ever go on to each other.
constexpr size_t kPlaces = 8;

struct Place {
  Action program = {};  // written before the handler is in place
};

constexpr size_t kReportStackBytes = size_t{256} << 10;

constinit SpinLock install_lock{LockRank::kProfile};
constinit Place places[kPlaces];
constinit size_t places_used TCMALLOC_GUARDED_BY(install_lock) = 0;
constinit char* report_stack = nullptr;

// The thread that reports, 0 if none does. The fault is its own.
constinit std::atomic<pid_t> reporter{0};
constinit GuardedFault reported_fault;

void Sleep(long nanoseconds) {
  timespec left = {.tv_sec = 0, .tv_nsec = nanoseconds};
  // Not by libc's function, at which a thread may be cancelled.
  ::syscall(SYS_nanosleep, &left, nullptr);
}

// Makes the running thread the one that reports. Waits for another one that does, but not for ever,
// because a fork may have left it behind. Returns false if there is one still, or if this thread's
// own report has failed.
bool BecomeReporter() {
  constexpr int kMostWaits = 5000;
  constexpr long kWait = 1'000'000;
  const pid_t self = system_calls.gettid();
  for (int i = 0; i < kMostWaits; ++i) {
    pid_t none = 0;
    if (reporter.compare_exchange_strong(none, self, std::memory_order_relaxed)) return true;
    if (none == self) return false;
    Sleep(kWait);
  }
  return false;
}

void WriteReport(void* argument) {
  WriteFault(*static_cast<const GuardedFault*>(argument), /*names=*/true);
}

// Writes the report on a stack of its own, because the program's may be almost at its end: an
// alternate stack of 8 KiB is common. A child that shares the memory does it while this thread
// waits, as with vfork. Without a child there are no names.
void WriteOnReportStack(GuardedFault* fault) {
  constexpr unsigned long kFlags = CLONE_VM | CLONE_VFORK | CLONE_FILES;
  constexpr uint64_t kAllSignals = ~uint64_t{0};
  uint64_t mask = 0;
  const bool blocked = system_calls.rt_sigprocmask(SIG_BLOCK, &kAllSignals, &mask) == 0;
  const pid_t child =
      report_stack != nullptr
          ? system_calls.clone(kFlags, report_stack + kReportStackBytes, WriteReport, fault)
          : -1;
  if (child > 0) {
    system_calls.wait4(child, nullptr, __WALL);
  } else {
    WriteFault(*fault, /*names=*/false);
  }
  if (blocked) system_calls.rt_sigprocmask(SIG_SETMASK, &mask, nullptr);
}

// Reports a fault in the guarded range, once for each block.
void Report(uintptr_t address, const void* context) {
  if (!BecomeReporter()) return;
  GuardedSlot* slot = guarded_blocks.FindNearest(address);
  if (slot != nullptr && !slot->reported.exchange(true, std::memory_order_relaxed)) {
    GuardedFault& fault = reported_fault;
    fault.address = address;
    fault.access = machine::AccessOf(*static_cast<const ucontext_t*>(context));
    fault.slot = slot;
    fault.stack.thread = static_cast<uint32_t>(system_calls.gettid());
    fault.stack.count = static_cast<uint32_t>(CaptureStackFrom(
        context, fault.stack.frames, static_cast<int>(GuardedStack::kMostFrames), 0));
    WriteOnReportStack(&fault);
  }
  reporter.store(0, std::memory_order_relaxed);
}

bool IsDefault(const Action& action) {
  return (action.sa_flags & SA_SIGINFO) == 0 &&
         (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN);
}

// Does what the kernel would do for a program without a handler. An instruction that faulted does
// so again when the handler returns, and a signal that was sent is sent again. Faults end the
// process though they be ignored.
void DoDefault(const Action& action, int signal, siginfo_t* info) {
  const bool sent = info->si_code <= 0;
  if (sent && action.sa_handler == SIG_IGN) return;
  Action unhandled = {};
  unhandled.sa_handler = SIG_DFL;
  ::sigaction(signal, &unhandled, nullptr);
  if (sent) ::syscall(SYS_rt_tgsigqueueinfo, getpid(), system_calls.gettid(), signal, info);
}

void GoOn(const Action& action, int signal, siginfo_t* info, void* context) {
  if (IsDefault(action)) return DoDefault(action, signal, info);
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    Action unhandled = {};
    unhandled.sa_handler = SIG_DFL;
    ::sigaction(signal, &unhandled, nullptr);
  }
  if ((action.sa_flags & SA_SIGINFO) != 0) return action.sa_sigaction(signal, info, context);
  action.sa_handler(signal);
}

void OnFault(const Place& place, int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const bool is_fault = info->si_code > 0;
  if (is_fault && heap.guarded().Owns(info->si_addr)) {
    Report(reinterpret_cast<uintptr_t>(info->si_addr), context);
  }
  errno = saved_errno;
  GoOn(place.program, signal, info, context);
}

template <size_t kPlace>
void HandlePlace(int signal, siginfo_t* info, void* context) {
  OnFault(places[kPlace], signal, info, context);
}

template <size_t... kIndices>
constexpr void FillHandlers(Handler* handlers, std::index_sequence<kIndices...>) {
  ((handlers[kIndices] = HandlePlace<kIndices>), ...);
}

struct Handlers {
  constexpr Handlers() { FillHandlers(of, std::make_index_sequence<kPlaces>()); }
  Handler of[kPlaces] = {};
};
constexpr Handlers kHandlers;

bool IsOurs(const Action& action) {
  if ((action.sa_flags & SA_SIGINFO) == 0) return false;
  for (const Handler handler : kHandlers.of) {
    if (action.sa_sigaction == handler) return true;
  }
  return false;
}

// Returns the action that calls `handler` as the program's own is called.
Action ActionLike(const Action& program, Handler handler) {
  Action action = program;
  action.sa_sigaction = handler;
  action.sa_flags = (IsDefault(program) ? SA_ONSTACK : program.sa_flags & ~SA_RESETHAND);
  action.sa_flags |= SA_SIGINFO;
  return action;
}

// Maps the stack on which reports are written, without which they have no names.
void EnsureReportStack() TCMALLOC_REQUIRES(install_lock) {
  if (report_stack != nullptr) return;
  void* stack = system_calls.mmap(nullptr, kReportStackBytes, PROT_READ | PROT_WRITE,
                                  MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (stack != MAP_FAILED) report_stack = static_cast<char*>(stack);
}

}  // namespace

void InstallFaultHandler() {
  SpinLockHolder holder(install_lock);
  Action program = {};
  if (::sigaction(SIGSEGV, nullptr, &program) != 0 || IsOurs(program)) return;
  if (places_used == kPlaces) return;
  EnsureReportStack();
  places[places_used].program = program;
  const Action ours = ActionLike(program, kHandlers.of[places_used]);
  ++places_used;
  ::sigaction(SIGSEGV, &ours, nullptr);
}

}  // namespace tcmalloc
