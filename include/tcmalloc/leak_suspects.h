// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Leaks of a program that goes on running: call sites whose live samples have become more for as
// long as the process runs, and of which the old ones stay. For C++ from C++17 on. Samples are
// those of heap profiles, one in TCMALLOC_SAMPLE_PARAMETER bytes. Thread safe; not for signal
// handlers.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_LEAK_SUSPECTS_H_
#define TCMALLOC_INCLUDE_TCMALLOC_LEAK_SUSPECTS_H_

#include <stddef.h>
#include <stdint.h>

#include <vector>

#include "tcmalloc/internal_malloc_extension.h"

namespace tcmalloc {

// One call site:
//   samples           that are live
//   blocks            for which they stand, as in heap profiles
//   bytes             of these blocks
//   bytes_per_minute  that were added and stayed
//   oldest_ns         age of the oldest sample
//   confidence        from 0 to 1
//   depth, stack      return addresses, innermost first
using LeakSuspect = tcmalloc_leak_suspect;

// Returns at most `most` suspects, the fastest first; none in a program without libtcmalloc. `most`
// may be any number: memory is taken for those that there are, and for some more. A leak is named
// once eight samples of it are there, so the rarer and smaller its blocks are the longer it takes,
// or the smaller TCMALLOC_SAMPLE_PARAMETER has to be.
inline std::vector<LeakSuspect> LeakSuspects(size_t most = 64) {
  if (tcmalloc_find_leak_suspects == nullptr) return {};
  constexpr size_t kFirstRoom = 64;
  std::vector<LeakSuspect> suspects;
  size_t found = 0;
  for (size_t room = kFirstRoom; found == suspects.size(); room *= 2) {
    suspects.resize(room < most ? room : most);
    found = tcmalloc_find_leak_suspects(suspects.data(), suspects.size());
    if (suspects.size() == most) break;
  }
  suspects.resize(found);
  return suspects;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_LEAK_SUSPECTS_H_
