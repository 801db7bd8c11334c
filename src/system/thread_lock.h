// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A lock that knows which thread has it.

#ifndef TCMALLOC_SYSTEM_THREAD_LOCK_H_
#define TCMALLOC_SYSTEM_THREAD_LOCK_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// For what takes long and may begin in a signal handler that interrupted it. In a child of fork it
// is free, whoever had it in the parent. Whoever waits looks again every millisecond. Thread safe
// and async-signal-safe; may change errno.
class ThreadLock {
 public:
  constexpr ThreadLock() = default;
  ThreadLock(const ThreadLock&) = delete;
  ThreadLock& operator=(const ThreadLock&) = delete;

  // Returns false if another thread or the code that this one interrupted has it.
  [[nodiscard]] bool TryLock();
  // Waits for other threads. Returns false if the code that this thread interrupted has it.
  [[nodiscard]] bool Lock();
  void Unlock();

 private:
  std::atomic<uint64_t> owner_{0};  // process and thread, 0 if there is none
};

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_THREAD_LOCK_H_
