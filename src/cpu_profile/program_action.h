// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The program's own handler of the signal that the profiler uses.

#ifndef TCMALLOC_CPU_PROFILE_PROGRAM_ACTION_H_
#define TCMALLOC_CPU_PROFILE_PROGRAM_ACTION_H_

#include <signal.h>

#include <atomic>

namespace tcmalloc {

// Returns true for signals of faults: a handler that returns to the fault gets it again, for ever.
bool IsFaultSignal(int signal);

// Takes a signal over, and keeps what the program wants done on it: what was set before, and what
// the program sets later by functions of libc, which the shared libraries stand before. Signals
// that are not the profiler's are handed on. Once taken, a signal stays taken, because one that is
// under way when the profiler stops must not end the process.
class ProgramAction {
 public:
  using Handler = void (*)(int signal, siginfo_t* info, void* context);

  constexpr ProgramAction() = default;

  // Returns false for the signal of a fault, and if the kernel refuses. The handler runs on the
  // stack for signals where a thread has one, because runtimes such as those of Go and OCaml keep
  // little room on others, but not where AlternateStacksAreUnfit. One thread at a time.
  bool Take(int signal, Handler handler);
  // Returns 0 if no signal was taken.
  int signal() const {
    // Acquire pairs with the release in Take: the program's action is there.
    return signal_.load(std::memory_order_acquire);
  }

  // Returns false if something other than the profiler's handler gets the signal.
  bool IsInPlace() const;

  // To be called once AlternateStacksAreUnfit: the profiler's handler, where it is in place, runs
  // on the stacks of the threads themselves from now on. May be called in signal handlers, and at
  // any time by any thread.
  void Reinstall();

  // Acts as sigaction does for the taken signal. May be called in signal handlers.
  void Exchange(const struct sigaction* action, struct sigaction* old);

  // Does what the program wants on a signal that the profiler's handler got. Ignores the signal if
  // the program has no handler.
  void Forward(siginfo_t* info, void* context);

 private:
  // A change takes the next place, so that a handler that reads one is not disturbed until all
  // others have been taken.
  static constexpr unsigned kPlaces = 16;

  using Action = struct sigaction;

  Action Current() const {
    // Acquire pairs with the release in Set.
    return actions_[current_.load(std::memory_order_acquire)];
  }
  void Set(const struct sigaction& action);
  bool Install(int signal);

  std::atomic<int> signal_{0};
  Handler handler_ = nullptr;
  std::atomic<unsigned> next_{0};
  std::atomic<unsigned> current_{0};
  struct sigaction actions_[kPlaces] = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_PROGRAM_ACTION_H_
