// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Holds all threads for a moment, so that their registers and stacks can be read.

#ifndef TCMALLOC_LEAK_CHECK_THREAD_STOP_H_
#define TCMALLOC_LEAK_CHECK_THREAD_STOP_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "leak_check/memory_map.h"

namespace tcmalloc {

// What is known of a thread.
struct StoppedThread {
  Relaxed<pid_t> id = 0;
  std::atomic<uint32_t> held{0};  // 1 once the thread is in the handler
  Relaxed<uintptr_t> stack_pointer = 0;
  Relaxed<uintptr_t> thread_pointer = 0;  // 0 if it is not known
  // The registers, on the stack that the handler runs on.
  Relaxed<uintptr_t> registers_begin = 0;
  Relaxed<uintptr_t> registers_end = 0;
};

// Sends a real-time signal that the program does not use to each other thread. Its handler waits
// until Resume. A thread that blocks the signal, or is not there in time, is listed but not held.
// The handler stays, because such a thread gets the signal later. One object, for one thread at a
// time. Neither takes a lock nor allocates.
class ThreadStop {
 public:
  constexpr ThreadStop() = default;
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  // Lists the other threads and holds those that it can. Blocks the signals of the running thread.
  // Returns false if threads cannot be listed; then nobody is held.
  bool Stop();
  // Lets all of them go on. Called once after each Stop.
  void Resume();

  size_t size() const { return count_; }
  const StoppedThread& operator[](size_t i) const { return threads_[i]; }

  // Notes where the running thread is and waits. Called by the handler.
  void Hold(const void* context, const void* frame);

 private:
  static constexpr size_t kMostThreads = size_t{1} << 15;
  // Nanoseconds for which threads are waited for, and those after which it is looked at which of
  // them block the signal.
  static constexpr uint64_t kMostWait = 500'000'000;
  static constexpr uint64_t kFirstWait = 10'000'000;

  bool Prepare();
  // Lists threads that are not yet known. Returns their number, or -1.
  int AddThreads();
  bool Add(pid_t id);
  // Waits until all threads that got the signal are held, or until the time has passed. Returns
  // false then.
  bool AwaitHeld(int64_t deadline);
  // Waits no longer for threads that block the signal.
  void GiveUpOnBlocked();
  bool BlocksSignal(pid_t thread) const;

  StoppedThread* threads_ = nullptr;  // never unmapped: a late handler may read it
  size_t count_ = 0;
  int signal_ = 0;
  pid_t process_ = 0;
  pid_t self_ = 0;
  uint64_t mask_ = 0;
  std::atomic<uint32_t> stopping_{0};
  std::atomic<uint32_t> listed_{0};
  std::atomic<uint32_t> sent_{0};
  std::atomic<uint32_t> holding_{0};  // threads in the handler
  std::atomic<uint32_t> arrived_{0};
};

// Returns the thread pointer of the running thread.
uintptr_t OwnThreadPointer();

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_THREAD_STOP_H_
