// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Keeps the signals that the kernel sends for a failed write from the program.

#ifndef TCMALLOC_BASE_HIDDEN_WRITE_SIGNALS_H_
#define TCMALLOC_BASE_HIDDEN_WRITE_SIGNALS_H_

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// Hides SIGPIPE and SIGXFSZ of this thread's writes while it lives: a pipe without a reader, or a
// limit on the size of files, must not end the program. A signal that was pending before stays
// pending. The end restores errno as it was at the begin. Used by one thread; async-signal-safe.
class HiddenWriteSignals {
 public:
  // Inline, because each function of its own has unwind information that is larger.
  TCMALLOC_ALWAYS_INLINE HiddenWriteSignals() : saved_errno_(errno) {
    SignalSet pending = 0;
    ::syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    to_take_ = kSignals & ~pending;
    blocked_ = ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &kSignals, &mask_, sizeof(mask_)) == 0;
  }
  TCMALLOC_ALWAYS_INLINE ~HiddenWriteSignals() {
    constexpr timespec kNoTime = {};
    if (raised_ && blocked_) {
      while (::syscall(SYS_rt_sigtimedwait, &to_take_, nullptr, &kNoTime, sizeof(to_take_)) > 0) {
      }
    }
    if (blocked_) ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, sizeof(mask_));
    errno = saved_errno_;
  }
  HiddenWriteSignals(const HiddenWriteSignals&) = delete;
  HiddenWriteSignals& operator=(const HiddenWriteSignals&) = delete;

  // Called after a write failed, with its errno.
  void NoteFailure() { raised_ = raised_ || errno == EPIPE || errno == EFBIG; }

 private:
  // The kernel's layout of a set of signals.
  using SignalSet = uint64_t;
  static constexpr SignalSet kSignals = SignalSet{1} << (SIGPIPE - 1) | SignalSet{1}
                                                                            << (SIGXFSZ - 1);

  int saved_errno_;
  SignalSet to_take_ = 0;
  SignalSet mask_ = 0;
  bool blocked_ = false;
  bool raised_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_HIDDEN_WRITE_SIGNALS_H_
