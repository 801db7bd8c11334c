// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// When objects that a cache keeps have to make way for others.

#ifndef TCMALLOC_CACHE_IDLE_BYTES_H_
#define TCMALLOC_CACHE_IDLE_BYTES_H_

#include <cstdint>

namespace tcmalloc {

// When the heap has grown by a step, a class gives back what a cache holds of it and did not need
// meanwhile, if it is this much. Less than that, of many classes that are used in turn, costs more
// time than it saves memory. docs/decisions/0131-idle-classes-make-way.md.
inline constexpr int64_t kManyIdleBytes = 64 << 10;

}  // namespace tcmalloc

#endif  // TCMALLOC_CACHE_IDLE_BYTES_H_
