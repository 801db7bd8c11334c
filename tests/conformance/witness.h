// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_CONFORMANCE_WITNESS_H_
#define TCMALLOC_TESTS_CONFORMANCE_WITNESS_H_

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "conformance/suite.h"

namespace tcmalloc::testing {

// The faults that the allocator has words for.
enum class Fault {
  kInvalid,     // a pointer that it never gave
  kMisaligned,  // not even aligned as its blocks are
  kInterior,    // into the middle of a block
  kDouble,      // of a block that is free
  kAny,         // any of them, or a free list found corrupted
};

// Tells the parent which address the message must name. For a body that runs in a child.
void Announce(const void* address);

// Runs `body` in a child that must end by SIGABRT, with one line on stderr that has the words of
// the fault and what the body announced.
void ExpectAbort(Case& result, Fault fault, const std::function<void()>& body);

// The child may also end well; it may not do anything else.
void ExpectAbortOrSurvival(Case& result, const std::function<void()>& body);

// Blocks that a child holds at the same time after a fault, kept outside the damaged heap.
class LiveBlocks {
 public:
  explicit LiveBlocks(std::size_t capacity);
  ~LiveBlocks();
  LiveBlocks(const LiveBlocks&) = delete;
  LiveBlocks& operator=(const LiveBlocks&) = delete;

  void Add(const void* block, std::size_t size);

  // No two blocks share a byte, and none is on the stack or in the program's data. Otherwise exits
  // with a status that no case accepts, and a message.
  void CheckOrExit();

 private:
  struct Range {
    const char* begin;
    const char* end;
  };
  Range* ranges_;
  std::size_t capacity_;
  std::size_t count_ = 0;
};

// Allocates `count` blocks of `size` bytes beside `live`, writes all of each, and checks them.
void AllocateAndCheck(LiveBlocks& live, std::size_t count, std::size_t size);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_WITNESS_H_
