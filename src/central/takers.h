// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The threads that take objects of one size class, and where each goes on.

#ifndef TCMALLOC_CENTRAL_TAKERS_H_
#define TCMALLOC_CENTRAL_TAKERS_H_

#include <cstddef>
#include <cstdint>

#include "central/recent_threads.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// A processor fetches lines ahead of a walk, beyond the end of what a thread owns. Where the lines
// there belong to a thread that writes them, both wait for each other at each end of a piece of
// memory. So threads that take at the same time shall take from different spans.
//
// Remembers the last kMost threads only. A thread that took nothing in the last kIdleTakes takes of
// all threads holds no span. Guarded by its owner.
class Takers {
 public:
  static constexpr uint32_t kMost = 8;
  static constexpr uint32_t kIdleTakes = 64;

  struct Taker {
    // In the span from which the thread took last, or right behind it if nothing is left there.
    PageId continue_at;
    uint32_t last_take = 0;
    bool holds_span = false;  // the one at continue_at, where something is left
  };

  // Returns the entry of `thread` and counts a take. `thread` is any address that no two threads
  // share at a time.
  Taker& Take(const void* thread) {
    ++takes_;
    const auto [taker, known] = threads_.Find(thread);
    if (!known) taker = {};
    taker.last_take = takes_;
    return taker;
  }

  // The number of threads that it remembers.
  uint32_t count() const { return threads_.count(); }

  // Returns true if a thread other than that of `own` holds `span`.
  bool IsHeldByOther(const Span* span, const Taker& own) const {
    for (const Taker& other : threads_.places()) {
      if (Holds(other, span) && &other != &own && IsActive(other)) return true;
    }
    return false;
  }

  // Ends what threads held in the place of `span`, which is new.
  void Release(const Span* span) {
    for (Taker& taker : threads_.places()) {
      if (Holds(taker, span)) taker.holds_span = false;
    }
  }

 private:
  static bool Holds(const Taker& taker, const Span* span) {
    return taker.holds_span && span->Contains(taker.continue_at);
  }
  bool IsActive(const Taker& taker) const { return takes_ - taker.last_take < kIdleTakes; }

  RecentThreads<Taker, kMost> threads_;
  uint32_t takes_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_TAKERS_H_
