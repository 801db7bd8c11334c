// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// One look at the blocks of the program, while nobody changes its memory.

#ifndef TCMALLOC_LEAK_CHECK_SNAPSHOT_H_
#define TCMALLOC_LEAK_CHECK_SNAPSHOT_H_

#include <cstdint>

#include "leak_check/search_request.h"
#include "profile_format/maps_text.h"

namespace tcmalloc {

enum class SnapshotOutcome : uint8_t {
  kDone,
  kNoMemory,
  kNoThreads,  // threads could not be listed
  kNoFork,
  kChildFailed,
};

// Takes a snapshot into *result, which NewResult made. The threads of the process wait while a
// child gets a copy of the memory, and go on while it looks at the copy. A process with one thread
// and not too much memory looks at its own; *maps then has the mappings of the process, and is
// empty otherwise. One at a time.
SnapshotOutcome TakeSnapshot(const SnapshotRequest& request, MapsText* maps,
                             SnapshotResult* result);

// Return null if no memory can be had.
SnapshotResult* NewResult();
void DeleteResult(SnapshotResult* result);

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_SNAPSHOT_H_
