// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Notices the end of threads.

#ifndef TCMALLOC_THREAD_THREAD_END_H_
#define TCMALLOC_THREAD_THREAD_END_H_

#include <pthread.h>

#include "system/system_calls.h"

namespace tcmalloc {

// A pthread key whose destructor is called at the end of each watched thread. Without a key, front
// ends outlive their threads.
class ThreadEnd {
 public:
  constexpr explicit ThreadEnd(void (*destructor)(void*)) : destructor_(destructor) {}
  ThreadEnd(const ThreadEnd&) = delete;
  ThreadEnd& operator=(const ThreadEnd&) = delete;

  // Called once, before anything else, by one thread. Allocates nothing.
  void MakeKey() { has_key_ = system_calls.pthread_key_create(&key_, destructor_) == 0; }

  // Arranges that the destructor is called when the running thread ends. `value` is any address but
  // null. May allocate. Returns false if libc has no memory for it.
  bool Watch(void* value) {
    return !has_key_ || system_calls.pthread_setspecific(key_, value) == 0;
  }

 private:
  void (*const destructor_)(void*);
  pthread_key_t key_ = 0;
  bool has_key_ = false;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_THREAD_END_H_
