// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The main function of a test that forks in several ways, one after the other.

#ifndef TCMALLOC_TESTS_STRESS_FORK_VARIANTS_H_
#define TCMALLOC_TESTS_STRESS_FORK_VARIANTS_H_

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <span>

#include "stress/fork/storm.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {

struct Variant {
  const char* name;
  void (*run)();
};

// The children of the variant that runs, where its signal handlers can reach them.
inline Tally* tally = nullptr;
inline Progress* progress = nullptr;
// Forks of its signal handlers.
inline std::atomic<int> handler_forks{0};

inline void AwaitChild(pid_t pid) {
  tally->Await(pid);
  progress->Advance();
}

// Has SIGUSR1 handled so.
inline void SetHandler(void (*handler)(int)) {
  struct sigaction action = {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  PROGRAM_CHECK(sigaction(SIGUSR1, &action, nullptr) == 0);
}

// Runs the variant that the first argument names, or all, supervised. Returns main's exit status; 2
// if there is no variant of that name.
inline int RunVariants(int argc, char** argv, const char* test, std::span<const Variant> variants) {
  static const char* only = nullptr;
  static std::span<const Variant> all;
  only = argc > 1 ? argv[1] : nullptr;
  all = variants;
  return RunSupervised(test, [](Progress& shared_progress) {
    progress = &shared_progress;
    int runs = 0;
    int failures = 0;
    for (const Variant& variant : all) {
      if (only != nullptr && strcmp(only, variant.name) != 0) continue;
      Tally outcomes;
      tally = &outcomes;
      handler_forks.store(0);
      variant.run();
      ++runs;
      failures += outcomes.Report(variant.name);
    }
    if (runs == 0) return 2;
    return failures == 0 ? 0 : 1;
  });
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FORK_VARIANTS_H_
