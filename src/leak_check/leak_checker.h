// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When the program is checked, and what follows from it.

#ifndef TCMALLOC_LEAK_CHECK_LEAK_CHECKER_H_
#define TCMALLOC_LEAK_CHECK_LEAK_CHECKER_H_

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/relaxed.h"
#include "leak_check/memory_map.h"
#include "leak_check/range_set.h"
#include "leak_check/snapshot.h"
#include "options/options.h"
#include "system/thread_lock.h"

namespace tcmalloc {

// The result of a check.
struct CheckOutcome {
  bool made = false;
  uint64_t objects = 0;
  uint64_t bytes = 0;
};

// The checks of a process: by HEAPCHECK at exit, and those that the program asks for. A child of
// fork makes none at exit. Thread safe; one check at a time.
class LeakChecker {
 public:
  constexpr LeakChecker() = default;
  LeakChecker(const LeakChecker&) = delete;
  LeakChecker& operator=(const LeakChecker&) = delete;

  // Starts to record if the options ask for a check. Called once, before the first block.
  void Start(const Options& options);

  // Called before the program's main function and after it, by a wrapper with this frame on the
  // stack of the first thread.
  void OnMainBegins(uintptr_t frame);
  [[nodiscard]] int OnMainEnds(int status);
  // Called when the program calls exit, before anything that shall happen at exit. Returns the
  // status to exit with: several threads may call exit, and the fastest of them ends the process.
  [[nodiscard]] int OnExitBegins(int status);
  // Called when the library's destructors run.
  void OnLastDestructors();
  // Writes over what the program's calls have left below the caller's frame. The frames of a check
  // that begins there are searched for the registers of the program, and have words that nothing is
  // written to. To be called by the function that the program calls.
  static void ClearStack();
  // Called behind all of them, and behind what else writes files at exit. Ends the process if it
  // has leaks and its status shall say so.
  void EndWithStatus() const;

  // Returns true if the environment may ask for a check of the program. For the time before the
  // options are known.
  static bool IsWanted();

  // True if checks do something.
  bool active() const { return active_.load(std::memory_order_relaxed); }
  // True if there is a check of the whole program.
  bool checks_program() const;

  // Makes a check of the blocks from `first_sequence` on, and reports leaks under this name. Says
  // something about a program without leaks if `say_if_clean`.
  CheckOutcome Check(const char* name, uint64_t first_sequence, bool say_if_clean);
  // Makes the check of the whole program.
  CheckOutcome CheckProgram(bool say_if_clean);
  void CancelCheckAtExit() { cancelled_ = true; }

  // Words whose blocks are live, and memory in which pointers are looked for.
  static bool AddLiveWord(uintptr_t word);
  static bool RemoveLiveWord(uintptr_t word);
  static void AddRootRegion(const Range& range);
  static void RemoveRootRegion(const Range& range);

 private:
  struct CheckJob;

  // Decides what the modes say about roots and times.
  void Choose(const Options& options);
  void CheckAtExit();
  void CheckBeforeDestructors();
  // Returns the status that leaks give to this process, or else `status`.
  int StatusAfterCheck(int status) const;
  static void RunAtExit(void* self);
  static void RunJob(uintptr_t stack, void* argument);
  // Runs it on the thread's stack, or on another one if too little is left of that.
  static void RunWithRoom(CheckJob* job);
  void Run(CheckJob* job);
  static void Tell(const struct CheckReport& report, MapsText* maps, bool say_if_clean);
  bool InOtherProcess() const;

  // Few, because each process asks for some at its exit. Large tables lie apart.
  HeapCheckOption mode_ = HeapCheckOption::kOff;
  bool after_destructors_ = false;
  bool global_roots_ = false;
  bool thread_roots_ = false;
  pid_t process_ = 0;
  std::atomic<bool> active_{false};
  Relaxed<bool> cancelled_ = false;
  Relaxed<uintptr_t> main_frame_ = 0;  // once main has returned
  uintptr_t wrapper_frame_ = 0;
  Relaxed<uint64_t> first_sequence_ = 0;
  bool registered_ = false;
  std::atomic<uint32_t> exit_checker_{0};  // the thread that makes the check at exit
  std::atomic<bool> leaks_at_exit_{false};
  ThreadLock lock_;  // of the thread that makes a check
};

extern constinit LeakChecker leak_checker;

// Calls f(stack pointer, argument) from a frame that has all registers whose values functions keep.
void CallWithRegistersOnStack(void (*f)(uintptr_t stack, void* argument), void* argument);

// Runs the functions that HeapCleaner has, once.
void RunHeapCleanups();

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_LEAK_CHECKER_H_
