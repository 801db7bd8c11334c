// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Families of functions that allocate.

#ifndef TCMALLOC_ALLOCATOR_BLOCK_FAMILY_H_
#define TCMALLOC_ALLOCATOR_BLOCK_FAMILY_H_

#include <cstdint>

namespace tcmalloc {

// The functions that must be used together.
enum class BlockFamily : uint8_t { kMalloc, kNew, kNewArray };

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_BLOCK_FAMILY_H_
