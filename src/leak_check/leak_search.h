// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The search for the blocks that nothing leads to.

#ifndef TCMALLOC_LEAK_CHECK_LEAK_SEARCH_H_
#define TCMALLOC_LEAK_CHECK_LEAK_SEARCH_H_

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "leak_check/block_index.h"
#include "leak_check/marker.h"
#include "leak_check/memory_map.h"
#include "leak_check/roots.h"
#include "leak_check/search_request.h"
#include "leak_check/thread_list.h"
#include "leak_check/thread_stop.h"
#include "profile_format/maps_text.h"
#include "profile_format/scratch.h"

namespace tcmalloc {

// Looks at memory that nobody changes meanwhile: a copy of the process, or the process itself if
// its only thread is here. Takes no lock, allocates nothing, and writes to no memory but its own
// and the result. For one search.
//
// Owns all memory that it takes, so that the end of the object gives it back even if a fault has
// ended Run.
class LeakSearch {
 public:
  // All of these outlive the search. `threads` are those at the last Stop.
  LeakSearch(const SnapshotRequest& request, const ThreadStop& threads, LoadedData& data,
             MapsText& maps, SnapshotResult* result)
      : request_(request), threads_(threads), data_(data), maps_(maps), result_(result) {}
  LeakSearch(const LeakSearch&) = delete;
  LeakSearch& operator=(const LeakSearch&) = delete;

  // Fills the counts, the rows and the list of the result, and reads the mappings. Returns false if
  // there was no memory for it.
  [[nodiscard]] bool Run();

 private:
  bool CopyBlocks();
  void SortByAddress(size_t begin, size_t end);
  void AddMapping(const Range& range);
  void AddSharedMemory(size_t mappings);
  bool Overlaps(const Range& range, size_t begin, size_t end) const;
  void MarkAll(Marker* marker);
  void MarkFromThreads(Marker* marker);
  void MarkFromUnlistedThreads(const ThreadList& list, Marker* marker);
  void MarkFromThread(const ThreadPlace& thread, Marker* marker);
  bool IsOfLinker(std::span<const uintptr_t> frames) const;
  void MarkChosenBlocks(Marker* marker);
  void MarkFiltered(Marker* marker);
  void CountLive();
  bool IsReported(const Marker& marker, uint32_t i) const;
  size_t CountReported(const Marker& marker) const;
  bool CountLost(size_t reported);
  uint64_t CountLostUnder(const PointerRules& rules);
  void TryOtherRules();

  const SnapshotRequest& request_;
  const ThreadStop& threads_;
  LoadedData& data_;
  Range linker_;
  MapsText& maps_;
  SnapshotResult* result_;
  MemoryMap memory_;
  Scratch<Block> blocks_;
  size_t block_count_ = 0;
  BlockIndex index_;
  std::optional<Marker> marker_;        // by the rules of the request
  std::optional<Marker> other_marker_;  // by other rules
  Scratch<uint8_t> verdicts_;           // of the filter, by stack
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_LEAK_SEARCH_H_
