// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The interface of a page heap that the layers above need.

#ifndef TCMALLOC_PAGE_HEAP_SPAN_SOURCE_H_
#define TCMALLOC_PAGE_HEAP_SPAN_SOURCE_H_

#include <concepts>

#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Thread safe. Spans come in state kLarge, with the page map's entries of their first and last page
// set; null means that no memory can be had. `zeroed` is true if the span's bytes read as zero.
// Delete takes a span in use from any thread. A source may have a function is_shared(), which is
// true if other processes may write to the memory.
template <typename T>
concept SpanSource = requires(T source, Span* span, Length length, Length alignment) {
  { source.New(length) } -> std::same_as<Span*>;
  { source.NewAligned(length, alignment) } -> std::same_as<Span*>;
  { source.Delete(span) } -> std::same_as<void>;
};

// Also has places for the spans of several threads.
//   NewNear(n, page)  works as New, for a thread whose last span ended before `page`
template <typename T>
concept PlacingSpanSource = SpanSource<T> && requires(T source, Length length, PageId near) {
  { source.NewNear(length, near) } -> std::same_as<Span*>;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_SPAN_SOURCE_H_
