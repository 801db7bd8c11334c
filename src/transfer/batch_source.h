// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The sources from which a front end draws objects.

#ifndef TCMALLOC_TRANSFER_BATCH_SOURCE_H_
#define TCMALLOC_TRANSFER_BATCH_SOURCE_H_

#include <concepts>
#include <cstdint>

#include "base/attributes.h"
#include "pages/free_link.h"
#include "transfer/chain_stack.h"

namespace tcmalloc {

// A central free list. Thread safe.
//   Fetch(n)     about n objects, or an empty chain if no memory can be had
//   FetchArray(a, n)  copies the addresses of about n objects, which come from spans, to an array.
//                 Returns their number
//   FetchLine()  the objects of a cache line, or of neighbouring ones, that nobody ever had; an
//                empty chain if there are none at hand
//   Insert(c)    takes the objects of a chain
//   IsSparse()   whether at least a third of its objects are free
template <typename T>
concept ChainSource = requires(T source, Chain chain, uint32_t n, void** array) {
  { source.Fetch(n) } -> std::same_as<Chain>;
  { source.FetchArray(array, n) } -> std::same_as<uint32_t>;
  { source.FetchLine() } -> std::same_as<Chain>;
  source.Insert(chain);
  { source.IsSparse() } -> std::same_as<bool>;
};

// A transfer cache: one that keeps some of the chains.
//   batch()         objects in a full chain
//   SpanBytes()     bytes of the spans from which objects come, about
//   ReturnUnused()  passes down some of what was not needed since the last call
//   InsertPast(c), FetchPast(n)  insert and fetch where nothing is kept
//   InsertWhileFew(c, n)  inserts a chain or an array where nothing is kept if n objects are kept
//   FetchKept()  a chain or an array that was inserted; an empty one if none is kept
//   NewArray(), DeleteArray(a)  an array of batch() objects, or null
template <typename T>
concept BatchSource = ChainSource<T> && requires(T source, Chain chain, uint32_t n, void** array) {
  { source.batch() } -> std::same_as<uint32_t>;
  { source.SpanBytes() } -> std::same_as<size_t>;
  source.ReturnUnused();
  source.InsertPast(chain);
  source.InsertWhileFew(PackedChain(chain), size_t{n});
  { source.FetchPast(n) } -> std::same_as<Chain>;
  { source.FetchKept() } -> std::same_as<PackedChain>;
  { source.NewArray() } -> std::same_as<void**>;
  source.DeleteArray(array);
};

// A source for each size class c, made when it is first asked for. Thread safe.
//   Ensure(c)  of any class
//   [c]        of a class for which Ensure was called: every one of which there ever was an object
//   Find(c)    of any class: null if Ensure was never called for it
template <typename T>
concept SourceTable =
    BatchSource<typename T::Source> && requires(T table, const T const_table, uint8_t c) {
      { table.Ensure(c) } -> std::same_as<typename T::Source&>;
      { const_table[c] } -> std::same_as<typename T::Source&>;
      { const_table.Find(c) } -> std::same_as<typename T::Source*>;
    };

// Fetches one object past all caches, with a zero link. Null if no memory can be had. A chain from
// a cache would have to be split, and its count may be wrong; see Chain.
template <BatchSource Source>
TCMALLOC_NOINLINE void* FetchOne(Source& source, const LinkCodec& codec) {
  const Chain chain = source.FetchPast(1);
  if (chain.empty()) return nullptr;
  void* object = ObjectAt(chain.head);
  if (chain.count > 1) source.InsertPast({codec.Next(object), chain.count - 1});
  LinkWord(object) = 0;
  return object;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_TRANSFER_BATCH_SOURCE_H_
