// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/program_action.h"

#include <ucontext.h>

#include <algorithm>
#include <iterator>

#include "system/alternate_stacks.h"

// libc's own name of sigaction, before which nobody stands.
extern "C" int __sigaction(int signal, const struct sigaction* action, struct sigaction* old);

namespace tcmalloc {
namespace {

// The signals of faults, which must do what the program wants, or end it.
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

}  // namespace

bool IsFaultSignal(int signal) {
  return std::find(std::begin(kFaults), std::end(kFaults), signal) != std::end(kFaults);
}

// Blocks all other signals in the handler, so that no other one leaves it by a jump. Does not block
// its own, though: the kernel would hand a signal of the process, such as that of a timer of its
// CPU time, to a thread that does not run.
bool ProgramAction::Install(int signal) {
  struct sigaction action = {};
  action.sa_sigaction = handler_;
  sigfillset(&action.sa_mask);
  sigdelset(&action.sa_mask, signal);
  for (const int fault : kFaults) sigdelset(&action.sa_mask, fault);
  bool avoids = false;
  do {
    avoids = AlternateStacksAreUnfit();
    action.sa_flags = SA_SIGINFO | SA_RESTART | SA_NODEFER | (avoids ? 0 : SA_ONSTACK);
    if (__sigaction(signal, &action, nullptr) != 0) return false;
    // Either Reinstall finds this handler, or its reason is seen here.
  } while (avoids != AlternateStacksAreUnfit());
  return true;
}

bool ProgramAction::Take(int signal, Handler handler) {
  if (IsFaultSignal(signal)) return false;
  const int before = signal_.load(std::memory_order_relaxed);
  if (before == signal && IsInPlace()) return true;
  struct sigaction old = {};
  if (__sigaction(signal, nullptr, &old) != 0) return false;
  if (old.sa_sigaction != handler) Set(old);
  handler_ = handler;
  // Release pairs with the acquire in ProgramAction::signal.
  signal_.store(signal, std::memory_order_release);
  if (Install(signal)) return true;
  signal_.store(before, std::memory_order_relaxed);
  return false;
}

bool ProgramAction::IsInPlace() const {
  struct sigaction now = {};
  return __sigaction(signal(), nullptr, &now) == 0 && now.sa_sigaction == handler_;
}

void ProgramAction::Reinstall() {
  const int taken = signal();
  if (taken != 0 && IsInPlace()) Install(taken);
}

void ProgramAction::Set(const struct sigaction& action) {
  const unsigned place = (next_.fetch_add(1, std::memory_order_relaxed) + 1) % kPlaces;
  actions_[place] = action;
  // Release pairs with the acquire in ProgramAction::Current: the action is there.
  current_.store(place, std::memory_order_release);
}

void ProgramAction::Exchange(const struct sigaction* action, struct sigaction* old) {
  const struct sigaction before = Current();
  if (action != nullptr) Set(*action);
  if (old != nullptr) *old = before;
}

void ProgramAction::Forward(siginfo_t* info, void* context) {
  struct sigaction action = Current();
  if (action.sa_handler == SIG_DFL || action.sa_handler == SIG_IGN) return;
  const int number = info->si_signo;
  if ((action.sa_flags & SA_RESETHAND) != 0) {
    struct sigaction none = {};
    none.sa_handler = SIG_DFL;
    Set(none);
  }
  // The program's handler runs with the mask that it asked for. The kernel restores the old one
  // when the profiler's handler returns.
  sigset_t blocked = static_cast<const ucontext_t*>(context)->uc_sigmask;
  sigorset(&blocked, &blocked, &action.sa_mask);
  if ((action.sa_flags & SA_NODEFER) == 0) sigaddset(&blocked, number);
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
  if ((action.sa_flags & SA_SIGINFO) != 0) {
    action.sa_sigaction(number, info, context);
  } else {
    action.sa_handler(number);
  }
}

}  // namespace tcmalloc
