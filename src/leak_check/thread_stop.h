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
#include "system/own_memory.h"

namespace tcmalloc {

// The state of a thread, as far as it is known.
struct StoppedThread {
  Relaxed<pid_t> id = 0;
  bool listens = false;           // takes the signal
  bool asked = false;             // got it
  bool given_up = false;          // is not waited for
  bool busy = false;              // runs, and does not take it now
  bool young = false;             // and has not yet told the kernel where its descriptor is
  std::atomic<uint32_t> held{0};  // 1 once the thread is in the handler
  Relaxed<uintptr_t> stack_pointer = 0;
  Relaxed<uintptr_t> thread_pointer = 0;  // 0 if it is not known
  // The registers, on the stack that the handler runs on.
  Relaxed<uintptr_t> registers_begin = 0;
  Relaxed<uintptr_t> registers_end = 0;
};

// Sends a real-time signal that the program does not use to each other thread. Its handler waits
// until Resume. A thread that blocks the signal or waits for it gets none, because it would stay
// pending, and be a surprise to the program or to the next one that the thread starts. Such a
// thread is listed but not held, as is one that is not there in time. The handler stays, because
// the latter gets the signal later. One object, for one thread at a time. Neither takes a lock nor
// allocates.
class ThreadStop {
 public:
  constexpr ThreadStop() = default;
  ThreadStop(const ThreadStop&) = delete;
  ThreadStop& operator=(const ThreadStop&) = delete;

  // Gets memory for the list of threads. Returns false if there is none.
  bool Reserve();
  // Lists the other threads and holds those that it can. Blocks the signals of the running thread.
  // Returns false if threads cannot be listed; then nobody is held. Requires Reserve.
  bool Stop();
  // Lets all of them go on. Called once after each Stop.
  void Resume();

  // Return what was true at the last Stop: the running thread, if a thread is the process's first,
  // and if it is among those listed.
  pid_t self() const { return self_; }
  bool IsFirst(pid_t thread) const { return thread == process_; }
  bool Lists(pid_t thread) const;
  size_t size() const { return count_; }
  // Returns true if the running thread was the only one.
  bool is_alone() const { return is_alone_; }
  const StoppedThread& operator[](size_t i) const { return threads_[i]; }

  // Notes where the running thread is and waits. Called by the handler.
  void Hold(const void* context, const void* frame);

 private:
  static constexpr size_t kMostThreads = size_t{1} << 15;
  // Nanoseconds for which threads are waited for; those after which it is looked at which of them
  // will not come; those for which one that runs may block it; and those for which nothing may
  // change.
  static constexpr int64_t kMostWait = 500'000'000;
  static constexpr int64_t kFirstWait = 10'000'000;
  static constexpr int64_t kBusyWait = 5'000'000;
  static constexpr int64_t kQuietWait = 50'000'000;

  void Prepare();
  // Makes sure that the signal has the handler of this object, and chooses another otherwise.
  void ChooseSignal();
  // Lists threads that are not yet known, and counts those that there are. Returns the number of
  // new ones, or -1.
  int AddThreads(size_t* seen);
  bool Add(pid_t id);
  void LookAt(StoppedThread& thread);
  // Sends the signal to those that take it and did not get it. Returns the number of these.
  int AskThreads();
  // Makes one round: lists threads and holds them. Returns false if they cannot be listed. Sets
  // *changed if there were new ones, and *complete if there is none left.
  bool HoldMore(int64_t start, bool* changed, bool* complete);
  // Waits until all threads that got the signal are held, or until the time has passed. Returns
  // false then.
  bool AwaitHeld(int64_t deadline);
  // Waits no longer for threads that will not take the signal.
  void GiveUpOnDeaf();

  StoppedThread* threads_ = nullptr;  // never unmapped: a late handler may read it
  size_t count_ = 0;
  UsedPages<kMostThreads * sizeof(StoppedThread)> used_;  // of the list
  bool is_alone_ = false;                                 // by the list and by the kernel's count
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
