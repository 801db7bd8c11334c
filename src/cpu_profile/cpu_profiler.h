// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Takes a CPU profile of the process.

#ifndef TCMALLOC_CPU_PROFILE_CPU_PROFILER_H_
#define TCMALLOC_CPU_PROFILE_CPU_PROFILER_H_

#include <gperftools/profiler.h>
#include <sys/types.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <span>

#include "base/spin_lock.h"
#include "cpu_profile/profile_output.h"
#include "cpu_profile/settings.h"
#include "cpu_profile/stack_counts.h"
#include "cpu_profile/ticker.h"

namespace tcmalloc {

// One profile at a time. Its functions may be called by any thread, and in signal handlers, where
// they do nothing if the interrupted thread is inside one of them. They keep errno.
class CpuProfiler {
 public:
  constexpr CpuProfiler() = default;
  CpuProfiler(const CpuProfiler&) = delete;
  CpuProfiler& operator=(const CpuProfiler&) = delete;

  // Begins a profile for the file `path`, which appears when it is flushed or stopped, in this
  // directory even if the program has left it by then. Returns false if one is being taken already,
  // or after a complaint.
  bool Start(const char* path, const ProfilerOptions* options);
  // Ends the profile and writes it.
  void Stop();
  // Does so before the process ends without exit handlers, unless a thread is inside the profiler.
  // Does nothing in the child of vfork or clone, which has the parent's profile.
  void StopBeforeEnd();
  // Writes what there is up to now, as a whole profile.
  void Flush();
  // Starts a profile, or stops the one that is being taken: their names are the prefix with .0, .1
  // and so on.
  void Toggle(const char* prefix);

  // Returns true if a profile of this process is being taken. A child that libc does not know of,
  // or whose fork was under way at the first start, has a copy of its parent's. Makes no system
  // call where none was started: a program may have forbidden itself all of them.
  bool running() const {
    const pid_t process = process_.load(std::memory_order_relaxed);
    return process != 0 && process == getpid();
  }
  void Describe(ProfilerState* state);

  // From now on children of fork take profiles of their own, with the settings of their parent's
  // and files that NameForProcess names after `path`, in this directory. Null ends it.
  void FollowForks(const char* path);

  // Gives up the profile in the child of a fork: the parent goes on with it.
  void AbandonInChild() TCMALLOC_NO_THREAD_SAFETY_ANALYSIS;

  // Guards the subscriptions of the ticker, too.
  SpinLock& lock() { return lock_; }

 private:
  // The frames of a stack for which there is no buffer.
  static constexpr int kShortStack = 62;

  static void OnTick(const Tick& tick, void* self);
  void AddStack(const Tick& tick, std::span<void*> room);
  void AddShortStack(const Tick& tick);
  void RegisterForkHandler();
  bool StartLocked(const char* path, const ProfilerOptions* options) TCMALLOC_REQUIRES(lock_);
  bool BeginLocked(const char* path) TCMALLOC_REQUIRES(lock_);
  void StopLocked() TCMALLOC_REQUIRES(lock_);
  void WriteLocked() TCMALLOC_REQUIRES(lock_);
  // Forgets the parent's profile.
  void GiveUp();
  void ReportLosses() const;

  SpinLock lock_{LockRank::kProfile};
  // The process whose profile is being taken, or 0.
  std::atomic<pid_t> process_{0};
  bool fork_handler_ = false;
  uint64_t toggles_ = 0;
  int subscription_ = -1;
  bool followed_ = false;  // nobody but FollowForks asked for the profile
  int64_t begin_monotonic_ns_ = 0;
  ProfilerSettings settings_;
  CpuProfileFacts facts_;
  ProfilerOptions options_ = {};
  StackCounts counts_;
  char path_of_children_[kPathCapacity] = {};  // absolute as path_; empty without FollowForks
  char path_[kPathCapacity] = {};              // absolute, but for a directory without a name
  size_t given_at_ = 0;                        // where what the caller gave begins in it
};

extern constinit CpuProfiler cpu_profiler;

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_CPU_PROFILER_H_
