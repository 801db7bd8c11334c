// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The question that a search for lost blocks is asked, and its answer.

#ifndef TCMALLOC_LEAK_CHECK_SEARCH_REQUEST_H_
#define TCMALLOC_LEAK_CHECK_SEARCH_REQUEST_H_

#include <cstddef>
#include <cstdint>
#include <span>

#include "leak_check/block_index.h"
#include "leak_check/marker.h"
#include "leak_check/memory_map.h"

namespace tcmalloc {

// The records of the program's blocks. Read without a lock, while nobody changes them.
class BlockSource {
 public:
  // Returns a number that the blocks do not exceed.
  virtual size_t CountAtMost() const = 0;
  // Returns the bytes of all blocks, about.
  virtual uint64_t Bytes() const = 0;
  // Stores at most `most` blocks and returns their number.
  virtual size_t Copy(Block* to, size_t most) const = 0;
  // Returns the return addresses of a stack, innermost first.
  virtual std::span<const uintptr_t> Frames(uint32_t stack) const = 0;

 protected:
  ~BlockSource() = default;
};

// Decides if a block of this stack is to be left out, together with everything that it leads to.
class StackFilter {
 public:
  virtual bool LeavesOut(std::span<const uintptr_t> frames) = 0;

 protected:
  ~StackFilter() = default;
};

struct SnapshotRequest {
  const BlockSource* blocks = nullptr;
  StackFilter* filter = nullptr;  // may be null
  PointerRules rules = {};
  // Blocks that were allocated before this one are not reported.
  uint64_t first_sequence = 0;
  bool global_roots = true;    // data of the program and of its libraries
  bool thread_roots = true;    // stacks, registers and thread-local variables
  bool mapping_roots = false;  // the mappings below, which otherwise have to be reached
  // Tries other rules if something is lost, to tell if they are the reason.
  bool try_other_rules = false;
  std::span<const Range> mappings = {};        // of the program's own calls of mmap
  std::span<const Range> root_regions = {};    // that the program named
  std::span<const uintptr_t> live_words = {};  // whatever these point at is not lost
  // The stack of the running thread, from its caller's frame on.
  uintptr_t own_stack = 0;
};

// Lost blocks of one stack.
struct LostRow {
  uint32_t stack = 0;
  uint64_t objects = 0;           // to which no other lost block leads
  uint64_t bytes = 0;             // of them
  uint64_t indirect_objects = 0;  // to which other lost blocks lead
  uint64_t indirect_bytes = 0;
};

struct LostBlock {
  uintptr_t address = 0;
  uint64_t bytes = 0;
  uint32_t stack = 0;
  bool indirect = false;
};

struct SnapshotCounts {
  bool complete = false;
  uint64_t live_blocks = 0;
  uint64_t live_bytes = 0;
  uint64_t lost_blocks = 0;
  uint64_t lost_bytes = 0;
  uint64_t left_out_blocks = 0;  // by the filter, with all that they lead to
  uint64_t left_out_bytes = 0;
  // Lost blocks under other rules, where they were tried.
  bool tried_other_rules = false;
  uint64_t lost_at_any_alignment = 0;
  uint64_t lost_at_any_offset = 0;
  uint32_t threads = 0;       // other than the running one
  uint32_t held_threads = 0;  // of these
  uint32_t row_count = 0;
  uint32_t listed_count = 0;
};

// Lies in memory that a child shares with the process.
struct SnapshotResult : SnapshotCounts {
  static constexpr size_t kMostRows = size_t{1} << 16;
  static constexpr size_t kMostListed = 4096;

  LostRow rows[kMostRows];        // by bytes, largest first; the last one may sum up others
  LostBlock listed[kMostListed];  // some of the lost blocks
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_SEARCH_REQUEST_H_
