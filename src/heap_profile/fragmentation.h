// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Who keeps free bytes from going back to the page heap.

#ifndef TCMALLOC_HEAP_PROFILE_FRAGMENTATION_H_
#define TCMALLOC_HEAP_PROFILE_FRAGMENTATION_H_

#include <span>

#include "heap_profile/sample_buffer.h"

namespace tcmalloc {

// Sets `pinned` of each row, which is a live sample, to the free bytes that fall to one of the
// blocks for which it stands. docs/subsystems/sampling.md derives the estimate. Leaves it 0 where
// no memory can be had. Called in the slow path.
void EstimatePinnedBytes(std::span<ProfileRow> rows);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_FRAGMENTATION_H_
