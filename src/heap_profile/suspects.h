// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds suspected leaks of a running program, by the ages of its samples.

#ifndef TCMALLOC_HEAP_PROFILE_SUSPECTS_H_
#define TCMALLOC_HEAP_PROFILE_SUSPECTS_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Returns the time since which the program is watched, by the monotonic clock.
int64_t WatchedSince();

// The fields of a live sample by which suspects are found.
struct AgedSample {
  uint32_t stack = 0;
  int64_t time_ns = 0;  // of its allocation
  double blocks = 0;    // for which it stands
  double bytes = 0;     // of these
};

// A stack whose blocks have become more for as long as the program was watched.
struct Suspect {
  uint32_t stack = 0;
  uint64_t samples = 0;
  double blocks = 0;
  double bytes = 0;
  double bytes_per_minute = 0;
  int64_t oldest_ns = 0;  // age of the oldest sample
  double confidence = 0;  // from 0 to 1
};

// Finds suspects among live samples, which are put into the order of their stacks. The program was
// watched from `begin_ns` to `now_ns`. Stores at most `most` and returns their number; the fastest
// come first. docs/subsystems/leak-checker.md tells the rules.
size_t FindSuspects(AgedSample* samples, size_t count, int64_t begin_ns, int64_t now_ns,
                    Suspect* suspects, size_t most);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SUSPECTS_H_
