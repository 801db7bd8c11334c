// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/fault_barrier.h"

#include <setjmp.h>
#include <signal.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// The first ones come from the instruction that runs. abort lets its own through.
constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT};
constexpr size_t kOfInstructions = std::size(kFaults) - 1;

// Where the handler goes, and the signals that were sent, one bit for each place of kFaults.
constinit sigjmp_buf* way_back = nullptr;
constinit volatile sig_atomic_t sent = 0;

void NoteSent(int signal) {
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    if (kFaults[i] == signal) sent = sent | 1 << i;
  }
}

// Tells apart what the kernel or abort raises and what somebody has sent.
void OnFault(int signal, siginfo_t* info, void* /*context*/) {
  const bool of_abort = signal == SIGABRT && info->si_pid == ::getpid();
  if (info->si_code <= 0 && !of_abort) return NoteSent(signal);
  ::siglongjmp(*way_back, 1);
}

// The handlers of the program, while others are in their place.
class FaultHandlers {
 public:
  FaultHandlers() {
    struct sigaction action;
    std::memset(&action, 0, sizeof(action));
    action.sa_sigaction = OnFault;
    action.sa_flags = SA_SIGINFO;
    ::sigfillset(&action.sa_mask);
    for (size_t i = 0; i < std::size(kFaults); ++i) ::sigaction(kFaults[i], &action, &old_[i]);
  }
  ~FaultHandlers() {
    for (size_t i = 0; i < std::size(kFaults); ++i) ::sigaction(kFaults[i], &old_[i], nullptr);
  }
  FaultHandlers(const FaultHandlers&) = delete;
  FaultHandlers& operator=(const FaultHandlers&) = delete;

 private:
  struct sigaction old_[std::size(kFaults)];
};

uint64_t SignalsOfInstructions() {
  uint64_t mask = 0;
  for (size_t i = 0; i < kOfInstructions; ++i) mask |= uint64_t{1} << (kFaults[i] - 1);
  return mask;
}

// The kernel ends a process that runs into a fault whose signal it blocks.
bool CallUnblocked(void (*f)(void* argument), void* argument) {
  const uint64_t unblocked = SignalsOfInstructions();
  uint64_t mask = 0;
  if (system_calls.rt_sigprocmask(SIG_UNBLOCK, &unblocked, &mask) != 0) return false;
  volatile bool done = false;
  sigjmp_buf here;
  if (sigsetjmp(here, 0) == 0) {
    way_back = &here;
    f(argument);
    done = true;
  }
  system_calls.rt_sigprocmask(SIG_SETMASK, &mask, nullptr);
  return done;
}

}  // namespace

bool CallUntilFault(void (*f)(void* argument), void* argument) {
  sent = 0;
  bool done = false;
  {
    const FaultHandlers handlers;
    done = CallUnblocked(f, argument);
  }
  for (size_t i = 0; i < std::size(kFaults); ++i) {
    if ((sent >> i & 1) != 0) system_calls.tgkill(::getpid(), system_calls.gettid(), kFaults[i]);
  }
  return done;
}

}  // namespace tcmalloc
