// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Threads that allocate while other code forks, and the checks on a forked child.

#ifndef TCMALLOC_TESTS_STRESS_FORK_STORM_H_
#define TCMALLOC_TESTS_STRESS_FORK_STORM_H_

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {

// Seconds a child may take before SIGALRM ends it and it counts as hung: more than a machine that
// is busy with other work keeps it waiting.
constexpr unsigned kChildAlarmSeconds = 60;

// Threads that churn blocks of their own and pass some to each other, so that a fork can meet
// every lock of the allocator taken. The destructor stops and joins them.
class Churners {
 public:
  explicit Churners(int count) {
    for (int i = 0; i < count; ++i) threads_.emplace_back([this, i] { Churn(i); });
  }
  Churners(const Churners&) = delete;
  Churners& operator=(const Churners&) = delete;
  ~Churners() {
    stop_.store(true, std::memory_order_relaxed);
    for (std::thread& thread : threads_) thread.join();
    for (std::atomic<void*>& slot : mailbox_) free(slot.load());
  }

 private:
  void Churn(int index) {
    BlockSet<256> blocks(static_cast<uint64_t>(index));
    Random random(static_cast<uint64_t>(index) + 1000);
    while (!stop_.load(std::memory_order_relaxed)) {
      blocks.Steps(8);
      std::atomic<void*>& slot = mailbox_[random.Below(mailbox_.size())];
      free(slot.exchange(malloc(random.Size()), std::memory_order_acq_rel));
    }
    blocks.FreeAll();
  }

  std::atomic<bool> stop_{false};
  std::array<std::atomic<void*>, 128> mailbox_{};
  std::vector<std::thread> threads_;
};

// Outcomes of children; safe to add to from several threads.
class Tally {
 public:
  // Waits for `pid`. A child that its alarm ended counts as a hang.
  void Await(pid_t pid) {
    int status = 0;
    while (waitpid(pid, &status, 0) < 0) PROGRAM_CHECK(errno == EINTR);
    children_.fetch_add(1);
    if (WIFSIGNALED(status) && WTERMSIG(status) == SIGALRM) {
      hangs_.fetch_add(1);
    } else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
      failures_.fetch_add(1);
    }
  }

  bool failed() const { return hangs_.load() != 0 || failures_.load() != 0; }

  // Prints one line and returns the exit status of the test.
  int Report(const char* variant) const {
    printf("%-24s %5d children, %d hangs, %d failures\n", variant, children_.load(), hangs_.load(),
           failures_.load());
    fflush(stdout);
    return failed() ? 1 : 0;
  }

 private:
  std::atomic<int> children_{0};
  std::atomic<int> hangs_{0};
  std::atomic<int> failures_{0};
};

// Shows that a child owns a whole, unlocked heap: the blocks that it inherited are intact and can
// be freed, it can allocate, and so can a thread that it starts.
template <typename Inherited>
void UseHeapInChild(Inherited& inherited, uint64_t seed) {
  inherited.CheckAll();
  BlockSet<32> own(seed);
  own.Steps(50);
  std::thread([seed] {
    BlockSet<32> of_thread(seed + 1);
    of_thread.Steps(50);
    of_thread.FreeAll();
  }).join();
  own.FreeAll();
  inherited.FreeAll();
}

// Ends a child the way that `round` selects: mostly at once, sometimes with exit handlers,
// sometimes by exec.
[[noreturn]] inline void LeaveChild(int round) {
  if (round % 10 == 0) {
    execl("/bin/true", "true", static_cast<char*>(nullptr));
    abort();
  }
  if (round % 10 == 1) exit(0);
  _exit(0);
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FORK_STORM_H_
