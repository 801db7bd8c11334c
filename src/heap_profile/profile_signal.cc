// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes a profile when a signal asks for it.

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <cstdlib>

#include "base/message.h"
#include "heap/heap.h"
#include "heap/observer.h"
#include "heap_profile/profile_path.h"
#include "heap_profile/profile_writer.h"

namespace tcmalloc {
namespace {

constexpr char kDefaultPattern[] = "tcmalloc.%p.%n.pb.gz";

// The process in which the signal came, or 0: a child of fork does not answer for its parent.
constinit std::atomic<pid_t> asked_process{0};

void RequestProfile(int) {
  asked_process.store(::getpid(), std::memory_order_relaxed);
  heap.background().Wake();
}

// Returns false if the program has a handler already.
bool Install(int signal) {
  struct sigaction action = {};
  if (::sigaction(signal, nullptr, &action) != 0 || action.sa_handler != SIG_DFL) return false;
  action = {};
  action.sa_handler = RequestProfile;
  action.sa_flags = SA_RESTART | SA_ONSTACK;
  return ::sigaction(signal, &action, nullptr) == 0;
}

// Leaves a process alone that does not ask for a signal.
__attribute__((constructor)) void InstallOnLoad() {
  if (getenv("TCMALLOC_HEAP_PROFILE_SIGNAL") == nullptr) return;
  MakeHeap();
  const auto signal = static_cast<int>(heap.options().heap_profile_signal);
  if (signal == 0) return;
  if (!Install(signal)) {
    Warn(Message() << "TCMALLOC_HEAP_PROFILE_SIGNAL=" << signal
                   << ": the signal has a handler already, or can have none; no profile is "
                      "written upon it");
    return;
  }
  heap.background().Start();
}

}  // namespace

void WriteRequestedProfile() {
  if (asked_process.load(std::memory_order_relaxed) == 0) return;
  if (asked_process.exchange(0, std::memory_order_relaxed) != ::getpid()) return;
  const PathOption& option = heap.options().heap_profile;
  const char* pattern = option.empty() ? kDefaultPattern : option.text;
  const ProfilePath path(pattern, {.type = "heap", .numbered = true});
  WriteHeapProfileFile(path.text());
}

}  // namespace tcmalloc
