// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Something for each of the threads that came last.

#ifndef TCMALLOC_CENTRAL_RECENT_THREADS_H_
#define TCMALLOC_CENTRAL_RECENT_THREADS_H_

#include <cstdint>
#include <span>

namespace tcmalloc {

// A place for each of the last kMost threads. Each further thread gets the place of one of them, in
// turn. Guarded by its owner.
template <typename Place, uint32_t kMost>
class RecentThreads {
 public:
  struct Found {
    Place& place;
    bool known;  // if not, the place is as the thread before left it
  };

  // Returns the place of `thread`, any address that no two threads share at a time.
  Found Find(const void* thread) {
    for (uint32_t i = 0; i < count_; ++i) {
      if (threads_[i] == thread) return {places_[i], true};
    }
    const uint32_t i = next_;
    next_ = (next_ + 1) % kMost;
    if (count_ < kMost) ++count_;
    threads_[i] = thread;
    return {places_[i], false};
  }

  // The number of threads that have a place.
  uint32_t count() const { return count_; }
  std::span<Place> places() { return {places_, count_}; }
  std::span<const Place> places() const { return {places_, count_}; }

 private:
  const void* threads_[kMost] = {};
  Place places_[kMost] = {};
  uint32_t count_ = 0;
  uint32_t next_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_RECENT_THREADS_H_
