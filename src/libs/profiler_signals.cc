// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stands before libc's functions that set signal handlers, so that a program that sets or resets
// the profiler's signal neither stops the profile nor is ended by a timer. Only the shared
// libraries can: in a static program libc's functions are in one file with what calls them.

#include <errno.h>
#include <signal.h>

#include <atomic>
#include <cstdint>

#include "base/attributes.h"
#include "cpu_profile/ticker.h"

namespace {

// The signals that interrupt system calls for good, as siginterrupt has it: a bit each.
constinit std::atomic<uint64_t> interrupting_signals{0};

// Returns 0 for a number that is no signal's.
uint64_t BitOf(int number) { return number > 0 && number < NSIG ? uint64_t{1} << (number - 1) : 0; }

sigset_t SetOf(int number) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, number);
  return set;
}

// Returns the handler before, or SIG_ERR.
sighandler_t SetHandler(int number, sighandler_t handler, int flags, const sigset_t& mask) {
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  action.sa_mask = mask;
  return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

}  // namespace

extern "C" {

int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);

TCMALLOC_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  tcmalloc::ProgramAction& kept = tcmalloc::ticker.action();
  if (number == 0 || number != kept.signal()) return __sigaction(number, action, old);
  kept.Exchange(action, old);
  return 0;
}

// BSD's: interrupted calls go on unless siginterrupt said otherwise, and the handler stays.
TCMALLOC_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  const uint64_t interrupting = interrupting_signals.load(std::memory_order_relaxed);
  const int flags = (interrupting & BitOf(number)) != 0 ? 0 : SA_RESTART;
  return SetHandler(number, handler, flags, SetOf(number));
}

TCMALLOC_EXPORT sighandler_t bsd_signal(int number, sighandler_t handler) noexcept
    __attribute__((alias("signal")));
TCMALLOC_EXPORT sighandler_t ssignal(int number, sighandler_t handler) noexcept
    __attribute__((alias("signal")));

// System V's, which programs in strict ISO C call by the name of signal: interrupted calls fail,
// and the handler serves once.
TCMALLOC_EXPORT sighandler_t __sysv_signal(int number, sighandler_t handler) noexcept {
  return SetHandler(number, handler, SA_RESETHAND | SA_NODEFER, {});
}

TCMALLOC_EXPORT sighandler_t sysv_signal(int number, sighandler_t handler) noexcept
    __attribute__((alias("__sysv_signal")));

// Sets a handler and unblocks the signal; SIG_HOLD blocks it instead. Returns SIG_HOLD if it was
// blocked.
TCMALLOC_EXPORT sighandler_t sigset(int number, sighandler_t handler) noexcept {
  const bool holds = handler == SIG_HOLD;
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = handler;
  if (sigaction(number, holds ? nullptr : &action, &old) != 0) return SIG_ERR;
  const sigset_t set = SetOf(number);
  sigset_t before;
  sigprocmask(holds ? SIG_BLOCK : SIG_UNBLOCK, &set, &before);
  return sigismember(&before, number) == 1 ? SIG_HOLD : old.sa_handler;
}

TCMALLOC_EXPORT int sigignore(int number) noexcept {
  return SetHandler(number, SIG_IGN, 0, {}) == SIG_ERR ? -1 : 0;
}

TCMALLOC_EXPORT int siginterrupt(int number, int interrupts) noexcept {
  struct sigaction action = {};
  if (sigaction(number, nullptr, &action) != 0) return -1;
  if (interrupts != 0) {
    interrupting_signals.fetch_or(BitOf(number), std::memory_order_relaxed);
    action.sa_flags &= ~SA_RESTART;
  } else {
    interrupting_signals.fetch_and(~BitOf(number), std::memory_order_relaxed);
    action.sa_flags |= SA_RESTART;
  }
  return sigaction(number, &action, nullptr);
}

}  // extern "C"
