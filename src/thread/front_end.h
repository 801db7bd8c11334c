// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Chooses between private caches and those of CPUs.

#ifndef TCMALLOC_THREAD_FRONT_END_H_
#define TCMALLOC_THREAD_FRONT_END_H_

#include <atomic>
#include <cstdint>

#include "base/message.h"
#include "options/options.h"
#include "system/rseq.h"
#include "system/topology.h"

namespace tcmalloc {

enum class FrontEnd : uint8_t { kPerThread, kPerCpu };

// Is the only place that decides which front end threads should have. Threads follow when they next
// enter a slow path: nobody is stopped, and both front ends may be in use at once.
//
// `auto` begins per thread. Once there are more threads than kManyThreads for each usable CPU,
// private caches cost more memory than they save time, and it switches to per CPU. When few threads
// are left, it switches back. docs/decisions/0009-choice-of-the-front-end.md has the measurements.
// Thread safe.
class FrontEndChoice {
 public:
  constexpr FrontEndChoice() = default;

  // Calls `usable_cpus` once, when there are enough threads for the number to matter.
  void Configure(FrontEndOption option, int (*usable_cpus)() = UsableCpus) {
    option_ = option;
    usable_cpus_ = usable_cpus;
  }
  // Updates that number. Does nothing while it was not asked for.
  void SetUsableCpus(int cpus) {
    if (many_threads_.load(std::memory_order_relaxed) == 0) return;
    many_threads_.store(kManyThreads * cpus, std::memory_order_relaxed);
  }

  FrontEnd wanted() const { return wanted_.load(std::memory_order_relaxed); }

  // Notes a thread that starts. `start_per_cpu()` is called at most once, when caches of CPUs are
  // first wanted. It detects what the kernel supports, makes the caches, and returns true if they
  // are available. NoteStart returns false while another thread is in that call, which takes
  // milliseconds. Hundreds of threads may start in that time, and one with a cache of its own would
  // keep it while it waits.
  template <typename F>
  [[nodiscard]] bool NoteStart(F start_per_cpu) {
    const int threads = threads_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (wanted() == FrontEnd::kPerCpu || !ShouldUsePerCpu(threads)) return true;
    if (state_.load(std::memory_order_relaxed) == State::kUntried && Try()) {
      // Release pairs with the acquire in NoteStart and Describe.
      state_.store(start_per_cpu() ? State::kStarted : State::kUnavailable,
                   std::memory_order_release);
    }
    // Acquire pairs with the release in NoteStart of the thread that tried: a thread that follows
    // the choice finds the caches made.
    const State state = state_.load(std::memory_order_acquire);
    if (state == State::kStarted) wanted_.store(FrontEnd::kPerCpu, std::memory_order_relaxed);
    return state != State::kTrying;
  }
  // Returns the number of threads that have a front end.
  int threads() const { return threads_.load(std::memory_order_relaxed); }
  // Returns true in the child of a fork that left others of them behind, in the middle of whatever
  // they did. Also in its own children.
  bool has_lost_threads() const { return has_lost_threads_.load(std::memory_order_relaxed); }
  // Resets the state in the child of a fork, where `threads` are left and a trying thread does not
  // exist.
  void ResetAfterFork(int threads);
  // Notes a thread that ends. Returns true if the choice switched and the caches of CPUs are no
  // longer wanted.
  bool NoteEnd();

  // Appends the wanted front end and, if the other one was tried in vain, the reason. `support` is
  // the result of start_per_cpu.
  void Describe(const RseqSupport& support, Message& message) const;

 private:
  static constexpr int kManyThreads = 16;  // for each CPU

  enum class State : uint8_t { kUntried, kTrying, kStarted, kUnavailable };

  // Returns true if this many threads should use caches of CPUs.
  bool ShouldUsePerCpu(int threads);
  // Switches back if so few threads are left that they should. Returns true if it did.
  bool SwitchBackIfFew(int threads);
  bool Try() {
    State untried = State::kUntried;
    return state_.compare_exchange_strong(untried, State::kTrying, std::memory_order_relaxed);
  }

  FrontEndOption option_ = FrontEndOption::kAuto;
  int (*usable_cpus_)() = UsableCpus;
  std::atomic<FrontEnd> wanted_{FrontEnd::kPerThread};
  std::atomic<State> state_{State::kUntried};
  std::atomic<int> threads_{0};
  std::atomic<bool> has_lost_threads_{false};
  std::atomic<int> many_threads_{0};  // 0 until it is known
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_FRONT_END_H_
