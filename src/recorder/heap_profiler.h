// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The heap profiler: when what is recorded goes to which file.

#ifndef TCMALLOC_RECORDER_HEAP_PROFILER_H_
#define TCMALLOC_RECORDER_HEAP_PROFILER_H_

#include <sys/types.h>

#include <cstdint>
#include <string_view>

#include "base/message.h"
#include "base/relaxed.h"
#include "recorder/profile_name.h"
#include "recorder/recorder.h"
#include "system/thread_lock.h"

namespace tcmalloc {

// The recorder of this process.
extern constinit Recorder recorder;

// Writes what the recorder has to prefix.NNNN.heap at intervals, by signal, at the end and when
// asked. Has no reference to it: that would be a word that the dynamic linker writes in every
// process. Thread safe.
class HeapProfiler {
 public:
  constexpr HeapProfiler() = default;
  HeapProfiler(const HeapProfiler&) = delete;
  HeapProfiler& operator=(const HeapProfiler&) = delete;

  // Does nothing if it is running. The options say what is recorded and when it is written.
  void Start(std::string_view prefix);
  // Starts for the whole run of a program, as HEAPPROFILE asks, if it does.
  void StartByOptions();
  void Stop();
  bool running() const { return recorder.running(); }
  // Writes a file for `reason`. Does nothing unless it is running, or in a signal handler that
  // interrupted another call.
  void Dump(std::string_view reason);
  // Writes a file unless another thread is writing one.
  void TryDump(std::string_view reason);
  // Writes the last file.
  void DumpAtExit();

  // Called after a change; `passed` is what the recorder returned. Writes a file if one is due.
  void DumpIfDue(bool passed);

 private:
  bool StartLocked(std::string_view prefix);
  bool AddHooks();
  void RemoveHooks();
  uint64_t SecondsSinceLast() const;
  bool TimeIsUp() const;
  bool FindReason(Message* reason) const;
  void NameNextFile();
  void DumpLocked(std::string_view reason);
  static int Quantum();

  ThreadLock lock_;  // of whoever starts, stops or writes
  // These are changed under the lock, and read without it.
  Relaxed<uint64_t> last_allocated_ = 0;
  Relaxed<uint64_t> last_freed_ = 0;
  Relaxed<uint64_t> high_water_ = 0;  // bytes in use
  Relaxed<int64_t> last_ns_ = 0;
  // The lock guards the rest.
  pid_t process_ = 0;      // that the files are of
  bool in_child_ = false;  // of the process that started
  uint64_t files_ = 0;     // since the process began
  ProfileName prefix_;
  ProfileName path_;
};

// The profiler of this process.
extern constinit HeapProfiler heap_profiler;

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_HEAP_PROFILER_H_
