// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The optional thread that lets an idle process give memory back.

#ifndef TCMALLOC_HEAP_BACKGROUND_THREAD_H_
#define TCMALLOC_HEAP_BACKGROUND_THREAD_H_

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// Does the housekeeping at regular times. It blocks all signals and allocates nothing. The child of
// fork has none until it allocates: see Restart. Thread safe.
class BackgroundThread {
 public:
  constexpr BackgroundThread() = default;
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Starts it unless it runs, and from now on again in each child of fork. False where the system
  // refuses. Called outside the slow path, for making a thread may allocate. Keeps errno.
  bool Start();
  // Ends it and waits until it has ended. Start works again afterwards.
  void Stop();
  bool running() const { return state_.load(std::memory_order_acquire) == kRunning; }

  // Starts it in a child of fork, if it ran in the parent. Cheap if not.
  void Restart() {
    if (__builtin_expect(state_.load(std::memory_order_relaxed) == kLost, 0)) Start();
  }
  // In the child of fork.
  void ResetAfterFork();

 private:
  // The word that the thread sleeps on.
  enum State : uint32_t { kNone, kStarting, kRunning, kStopping, kLost };

  static void* Main(void* self);
  bool Create();
  void WaitFor(uint64_t ns);

  std::atomic<uint32_t> state_{kNone};
  pid_t process_ = 0;  // that it was started in
  pthread_t thread_ = {};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_BACKGROUND_THREAD_H_
