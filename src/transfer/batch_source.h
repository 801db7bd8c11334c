// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a front end draws objects from.

#ifndef TCMALLOC_TRANSFER_BATCH_SOURCE_H_
#define TCMALLOC_TRANSFER_BATCH_SOURCE_H_

#include <concepts>
#include <cstdint>

#include "pages/free_link.h"

namespace tcmalloc {

// The transfer cache is one, over the central free list, which is one itself. Thread safe.
//   Fetch(n)   between 1 and n objects, or an empty chain if no memory can be had
//   Insert(c)  takes the objects of a chain
template <typename T>
concept BatchSource = requires(T source, Chain chain, uint32_t n) {
  { source.Fetch(n) } -> std::same_as<Chain>;
  source.Insert(chain);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_BATCH_SOURCE_H_
