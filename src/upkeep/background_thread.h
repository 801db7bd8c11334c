// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The optional threads that let an idle process give memory back.

#ifndef TCMALLOC_UPKEEP_BACKGROUND_THREAD_H_
#define TCMALLOC_UPKEEP_BACKGROUND_THREAD_H_

#include <pthread.h>
#include <sys/types.h>

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// The work of these threads, as functions of the root or of a test.
struct BackgroundWork {
  // Does the work that is due and sets *wait to the nanoseconds until the next call, 0 for never.
  // Returns false, having done nothing, while a fork is under way.
  bool (*run)(uint64_t* wait);
  // Called before and after the time in which a thread calls run() regularly.
  void (*runner_comes)();
  void (*runner_goes)();
  // Returns true if the running thread was interrupted inside the slow path, so that it may hold
  // locks for which others wait.
  bool (*is_interrupted)();
};

// Does its work at regular times: on threads that the program lends or, if it is asked to and none
// is lent, on a thread of the allocator's own. These threads block all signals of programs,
// allocate nothing, and stay away while a fork is under way. Thread safe.
//
// Start, Stop and RunForever first record a wish and then fulfil it, one thread at a time, while
// the others wait. A thread that has made a change checks again whether it is still wished, so that
// the last wish counts. Wishes are written before the state is read, and the state is written
// before the wishes are read again, all in one order. The child of fork has no such threads. The
// own thread comes back when the child allocates: see Restart.
class BackgroundThread {
 public:
  constexpr explicit BackgroundThread(const BackgroundWork& work) : work_(work) {}
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Lets some thread do the housekeeping from now on, in each child of fork too. Returns false if
  // the system refuses a thread. Called outside the slow path, because making a thread may
  // allocate, and not by a signal handler. Keeps errno.
  bool Start();
  // Ends the own thread and waits until it has ended; lent threads pause until Start. Called under
  // the same conditions.
  void Stop();
  // Stops when the process ends, but waits no longer than a round may take. Does not wait at all if
  // the running thread interrupted itself inside the slow path, because the own thread may then
  // wait for a lock that the interrupted code holds. No thread starts after one that was not waited
  // for.
  void StopAtExit();
  // Lends the calling thread for good. It pauses while Stop was the last call.
  [[noreturn]] void RunForever();

  // Returns true if some thread does the work, or will in this child of fork.
  bool enabled() const;

  // Sets the least time between two rounds, in nanoseconds; 0 leaves it to the housekeeping.
  void set_interval(uint64_t ns);
  uint64_t interval() const { return interval_ns_.load(std::memory_order_relaxed); }
  // Makes the threads apply changed settings.
  void Wake();

  // Returns true in a child of fork in whose parent the own thread ran, until Restart.
  bool is_lost() const { return state_.load(std::memory_order_relaxed) == kLost; }
  // Starts the own thread if it is lost.
  void Restart() {
    if (is_lost()) FulfilWishes();
  }
  // Called in the child of fork.
  void ResetAfterFork();

 private:
  // kUnsaid accepts threads that the program lends.
  enum class Wish : uint8_t { kUnsaid, kOn, kOff };
  // The state of the own thread. kStarting and kStopping belong to the thread that makes the
  // change. kAbandoned is final: the process ends, and did not wait for the thread. Up to kStopping
  // the thread is to end, if there is one; up to kAbandoned there is none that works.
  enum State : uint32_t { kNone, kAbandoned, kStopping, kStarting, kRunning, kLost };

  static void* Main(void* self);
  // Pairs with Start, Stop, StopAtExit and RunForever, in one order with the state.
  bool WantsOwnThread() const { return wish_.load() == Wish::kOn && lent_.load() == 0; }
  void FulfilWishes();
  void SetState(State state);
  bool Create();
  void Join();
  bool AwaitEnd();
  void RunRound(uint32_t events);
  void WaitFor(uint64_t ns, uint32_t events);
  bool paused() const { return wish_.load(std::memory_order_relaxed) == Wish::kOff; }
  bool IsOfThisProcess() const;

  const BackgroundWork work_;
  std::atomic<Wish> wish_{Wish::kUnsaid};
  std::atomic<uint32_t> state_{kNone};  // waited on by Start and Stop
  std::atomic<uint32_t> has_ended_{0};  // the own thread; waited on by StopAtExit
  std::atomic<uint32_t> events_{0};     // waited on by the threads; counts what they should notice
  std::atomic<int> lent_{0};            // threads of the program
  std::atomic<uint64_t> interval_ns_{0};
  std::atomic<pid_t> process_{0};  // in which the own thread was started
  pthread_t thread_ = {};          // published by state_
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_BACKGROUND_THREAD_H_
