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

// The work of these threads, and how they take part in it. The functions of the root, or of a test.
struct BackgroundWork {
  // Does what is due and sets after how many nanoseconds to do so again, 0 for never. False, and
  // does nothing, while a fork is under way.
  bool (*run)(uint64_t* wait);
  // Around the time in which a thread calls run() regularly.
  void (*runner_comes)();
  void (*runner_goes)();
  // The running thread was interrupted inside the slow path, and may hold what others wait for.
  bool (*is_interrupted)();
};

// Does its work at regular times, on threads that the program lends or, where it is asked
// to and there is none, on a thread of the allocator's own. They block all signals of programs,
// allocate nothing, and stay away while a fork is under way. Thread safe.
//
// Start, Stop and RunForever first say what is wanted and then make it so, one thread at a time;
// the others wait. Whoever has made a change looks again whether it is still wanted, so that the
// last word counts: a word is written before the state is read, and the state before the words are
// read again, all in one order. The child of fork has no such threads; the own one comes back when
// it allocates: see Restart.
class BackgroundThread {
 public:
  constexpr explicit BackgroundThread(const BackgroundWork& work) : work_(work) {}
  BackgroundThread(const BackgroundThread&) = delete;
  BackgroundThread& operator=(const BackgroundThread&) = delete;

  // Lets some thread do the housekeeping from now on, in each child of fork too. False where the
  // system refuses one. Called outside the slow path, for making a thread may allocate, and not by
  // a signal handler. Keeps errno.
  bool Start();
  // Ends the own thread and waits until it has ended; lent threads pause until Start. Likewise.
  void Stop();
  // Stops when the process ends, but waits only so long that a round can end, and not at all
  // where the running thread interrupted itself inside the slow path: the own thread may then wait
  // for what the interrupted code holds.
  void StopAtExit();
  // Lends the calling thread for good. It pauses while Stop was the last word.
  [[noreturn]] void RunForever();

  // True if some thread does the work, or will in this child of fork.
  bool enabled() const;

  // The least time between two rounds, in nanoseconds; 0 leaves it to the housekeeping.
  void set_interval(uint64_t ns);
  uint64_t interval() const { return interval_ns_.load(std::memory_order_relaxed); }
  // Lets the threads go by settings that have changed.
  void Wake();

  // Starts the own thread in a child of fork, if it ran in the parent. Cheap if not.
  void Restart() {
    if (__builtin_expect(state_.load(std::memory_order_relaxed) == kLost, 0)) Settle();
  }
  // In the child of fork.
  void ResetAfterFork();

 private:
  // kUnsaid: threads are welcome that the program lends.
  enum class Wish : uint8_t { kUnsaid, kOn, kOff };
  // Of the own thread. kStarting and kStopping belong to the thread that makes the change.
  enum State : uint32_t { kNone, kStarting, kRunning, kStopping, kLost };

  static void* Main(void* self);
  // Pairs with Start, Stop, StopAtExit and RunForever, in one order with the state.
  bool WantsOwnThread() const { return wish_.load() == Wish::kOn && lent_.load() == 0; }
  void Settle();
  void SetState(State state);
  bool Create();
  void Join();
  bool AwaitEnd();
  void Round(uint32_t events);
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
  std::atomic<pid_t> process_{0};  // that the own thread was started in
  pthread_t thread_ = {};          // published by state_
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_BACKGROUND_THREAD_H_
