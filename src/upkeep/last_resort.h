// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides when a request that failed justifies emptying all caches.

#ifndef TCMALLOC_UPKEEP_LAST_RESORT_H_
#define TCMALLOC_UPKEEP_LAST_RESORT_H_

#include <atomic>
#include <cstdint>

#include "page_heap/stats.h"
#include "pages/page_types.h"

namespace tcmalloc {

// The memory in caches. `pages` bounds the pages that the page heap may gain from it, because one
// object keeps a whole span in use.
struct CachedMemory {
  uint64_t objects = 0;
  Length pages;
};

// Programs probe how much memory they may have, and ask for more than there can be. Emptying the
// caches of every thread and CPU is then in vain, and their contents have to be fetched again. So a
// request is first compared with all memory that the caches could give. Memory that a shed left in
// caches, because nobody can take it from their owners, counts again only after a pause. Takes no
// lock; a race between two sheds costs one of them at most.
class LastResort {
 public:
  static constexpr int64_t kCostShare = 64;
  static constexpr int64_t kLeastPause = 10'000'000;  // nanoseconds
  static constexpr int64_t kMostPause = 1'000'000'000;

  struct Request {
    Length pages;  // side by side; 0 for one object
    Length limit;  // of the page heap; 0 for none
    PageHeapStats heap;
  };

  constexpr LastResort() = default;
  LastResort(const LastResort&) = delete;
  LastResort& operator=(const LastResort&) = delete;

  // Returns true if `most` pages that become free could serve the request. If the limit allows the
  // request, the system refused more memory, and the heap's own memory must suffice.
  static bool IsPossible(const Request& request, Length most);

  // Returns true if a shed at `now`, in nanoseconds of a monotonic clock, could serve the request.
  bool MayHelp(const Request& request, const CachedMemory& cached, int64_t now) const;

  // Notes a shed that took from `begin` to `end` and left `cached` in the caches.
  void NoteShed(const CachedMemory& cached, int64_t begin, int64_t end);

 private:
  std::atomic<uint64_t> left_{0};
  std::atomic<int64_t> pause_end_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_LAST_RESORT_H_
