// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Signal handlers that interrupt the allocator.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_HANDLERS_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_HANDLERS_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace tcmalloc::testing {

struct Handler {
  const char* name;
  void (*handle)();
  // True if it keeps blocks, frees older ones, or frees out of order, which a list of the thread's
  // own does not stand between two instructions.
  bool changes_lists = false;
  // True if it takes as long as many others.
  bool slow = false;
  // True if it starts threads, for which libc keeps memory.
  bool has_threads = false;
  // True if it makes the front end turn, where that goes by the number of threads.
  bool turns = false;
};

std::span<const Handler> Handlers();
// For operations of classes that drain.
std::span<const Handler> DrainingHandlers();

// Makes the blocks that handlers free.
void StockUp();
// Frees what they kept, and what is left of what they had.
void FinishHandlers();

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_HANDLERS_H_
