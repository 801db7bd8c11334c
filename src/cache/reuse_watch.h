// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Notices a thread that allocates and frees one small object over and over.

#ifndef TCMALLOC_CACHE_REUSE_WATCH_H_
#define TCMALLOC_CACHE_REUSE_WATCH_H_

#include <cstdint>

namespace tcmalloc {

// A cache hands out the object that was freed last. Suppose another thread allocated that object,
// beside objects that third threads have now. It would then serve its new owner for ever, and every
// write to it would take the cache line from the others.
// docs/decisions/0010-passive-false-sharing.md.
//
// Called now and then with the object that malloc is about to return. Owned by one thread.
class ReuseWatch {
 public:
  static constexpr uintptr_t kLineBytes = 64;

  constexpr ReuseWatch() = default;

  // Returns true if the previous call had the same object, or there was none, and its cache line is
  // not known to be this thread's alone.
  bool IsStuckAt(const void* object) {
    if (LineOf(object) == own_line_) return false;
    const bool stuck = last_ == nullptr || last_ == object;
    last_ = object;
    return stuck;
  }

  // Notes that `object` lies in a line in which no other thread has an object.
  void MoveTo(const void* object) { own_line_ = LineOf(object); }

 private:
  static uintptr_t LineOf(const void* object) {
    return reinterpret_cast<uintptr_t>(object) / kLineBytes;
  }

  const void* last_ = nullptr;
  uintptr_t own_line_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_REUSE_WATCH_H_
