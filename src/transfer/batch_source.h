// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a front end draws objects from.

#ifndef TCMALLOC_TRANSFER_BATCH_SOURCE_H_
#define TCMALLOC_TRANSFER_BATCH_SOURCE_H_

#include <concepts>
#include <cstdint>

#include "pages/free_link.h"

namespace tcmalloc {

// A central free list. Thread safe.
//   Fetch(n)   about n objects, or an empty chain if no memory can be had
//   Insert(c)  takes the objects of a chain
template <typename T>
concept ChainSource = requires(T source, Chain chain, uint32_t n) {
  { source.Fetch(n) } -> std::same_as<Chain>;
  source.Insert(chain);
};

// A transfer cache: one that keeps some of the chains.
//   batch()         objects in a full chain
//   ReturnUnused()  passes down some of what was not needed since the last call
template <typename T>
concept BatchSource = ChainSource<T> && requires(T source) {
  { source.batch() } -> std::same_as<uint32_t>;
  source.ReturnUnused();
};

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_BATCH_SOURCE_H_
