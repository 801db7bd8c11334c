// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Ends with many live blocks, which the mode looks at, while a signal handler that allocates and
// frees comes again and again. The program must end.

#include <signal.h>
#include <sys/time.h>

#include <cstddef>
#include <cstdlib>

namespace {

constexpr std::size_t kLive = 200'000;
constexpr std::size_t kLiveSize = 200;

void* live[kLive];

// Once, so that a slow handler leaves the program some time.
void SetTimer() {
  constexpr int kMicroseconds = 100;
  itimerval timer{};
  timer.it_value.tv_usec = kMicroseconds;
  setitimer(ITIMER_REAL, &timer, nullptr);
}

// Needs spans, large and small.
void AllocateAndFree(int) {
  constexpr std::size_t kSizes[] = {100'000, 5'000, 5'000, 5'000, 40};
  for (const std::size_t size : kSizes) {
    void* const block = std::malloc(size);
    if (block == nullptr) std::abort();
    std::free(block);
  }
  SetTimer();
}

}  // namespace

int main() {
  for (void*& block : live) block = std::malloc(kLiveSize);
  signal(SIGALRM, AllocateAndFree);
  SetTimer();
  return 0;
}
