// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Keeps a signal that the kernel sends for a failed write from the program.

#ifndef TCMALLOC_BASE_HIDDEN_SIGNAL_H_
#define TCMALLOC_BASE_HIDDEN_SIGNAL_H_

#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

namespace tcmalloc {

// Hides SIGPIPE or SIGXFSZ of this thread's writes while it lives. A signal that was pending before
// stays pending. The end restores errno as it was at the begin. Used by one thread;
// async-signal-safe.
class HiddenSignal {
 public:
  explicit HiddenSignal(int signal) : saved_errno_(errno), set_(SignalSet{1} << (signal - 1)) {
    SignalSet pending = 0;
    ::syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    was_pending_ = (pending & set_) != 0;
    blocked_ = ::syscall(SYS_rt_sigprocmask, SIG_BLOCK, &set_, &mask_, sizeof(mask_)) == 0;
  }
  ~HiddenSignal() {
    if (raised_ && blocked_ && !was_pending_) {
      constexpr timespec kNoTime = {};
      ::syscall(SYS_rt_sigtimedwait, &set_, nullptr, &kNoTime, sizeof(set_));
    }
    if (blocked_) ::syscall(SYS_rt_sigprocmask, SIG_SETMASK, &mask_, nullptr, sizeof(mask_));
    errno = saved_errno_;
  }
  HiddenSignal(const HiddenSignal&) = delete;
  HiddenSignal& operator=(const HiddenSignal&) = delete;

  // Called after a write failed that may have raised the signal.
  void NoteRaised() { raised_ = true; }

 private:
  // The kernel's layout of a set of signals.
  using SignalSet = uint64_t;

  int saved_errno_;
  SignalSet set_;
  SignalSet mask_ = 0;
  bool was_pending_ = false;
  bool blocked_ = false;
  bool raised_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_HIDDEN_SIGNAL_H_
