// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Lets threads sleep until a word changes.

#ifndef TCMALLOC_SYSTEM_FUTEX_H_
#define TCMALLOC_SYSTEM_FUTEX_H_

#include <linux/futex.h>
#include <time.h>

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdint>

#include "system/system_calls.h"

namespace tcmalloc {

// The calls go directly to the kernel, because libc's are points of cancellation. They may change
// errno. A word must be visible to this process alone.

inline uint32_t* FutexWord(std::atomic<uint32_t>& word) {
  return reinterpret_cast<uint32_t*>(&word);
}

// Sleeps while the word has this value, until somebody wakes the thread. May return early.
inline void SleepWhile(std::atomic<uint32_t>& word, uint32_t value) {
  system_calls.futex(FutexWord(word), FUTEX_WAIT_PRIVATE, value, nullptr);
}

// Sleeps for at most `ns` nanoseconds. Returns false if they have passed.
inline bool SleepWhile(std::atomic<uint32_t>& word, uint32_t value, uint64_t ns) {
  constexpr uint64_t kSecond = 1'000'000'000;
  const timespec timeout = {static_cast<time_t>(ns / kSecond), static_cast<long>(ns % kSecond)};
  return system_calls.futex(FutexWord(word), FUTEX_WAIT_PRIVATE, value, &timeout) == 0 ||
         errno != ETIMEDOUT;
}

inline void WakeSleepers(std::atomic<uint32_t>& word) {
  system_calls.futex(FutexWord(word), FUTEX_WAKE_PRIVATE, INT_MAX, nullptr);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_FUTEX_H_
