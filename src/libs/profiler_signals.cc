// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stands before libc's functions that set signal handlers, so that a program that sets or resets
// the profiler's signal neither stops the profile nor is ended by a timer. Only the shared
// libraries can: in a static program libc's functions are in one file with what calls them.

#include <errno.h>
#include <signal.h>

#include "base/attributes.h"
#include "cpu_profile/ticker.h"

extern "C" {

int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);

TCMALLOC_EXPORT int sigaction(int number, const struct sigaction* action, struct sigaction* old) {
  tcmalloc::ProgramAction& kept = tcmalloc::ticker.action();
  if (number == 0 || number != kept.signal()) return __sigaction(number, action, old);
  kept.Exchange(action, old);
  return 0;
}

// As the C library's: interrupted calls go on, and the handler stays.
TCMALLOC_EXPORT sighandler_t signal(int number, sighandler_t handler) noexcept {
  struct sigaction action = {};
  struct sigaction old = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaddset(&action.sa_mask, number);
  if (handler == SIG_ERR) {
    errno = EINVAL;
    return SIG_ERR;
  }
  return sigaction(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}

}  // extern "C"
