// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An ordered set of spans.

#ifndef TCMALLOC_PAGE_HEAP_CLASSIC_SPAN_TREE_H_
#define TCMALLOC_PAGE_HEAP_CLASSIC_SPAN_TREE_H_

#include <cstddef>

#include "pages/span.h"

namespace tcmalloc {

// Spans by length, then by address. A treap: a search tree that is also a heap by a hash of the
// span's address, which makes its expected depth logarithmic for any order of insertions. It uses
// the spans' own links (`prev_node` is the left subtree, `next_node` the right one), so that it
// allocates nothing and a step costs one cache line. A span may not change while it is in the tree.
// Not thread safe.
class SpanTree {
 public:
  constexpr SpanTree() = default;
  SpanTree(const SpanTree&) = delete;
  SpanTree& operator=(const SpanTree&) = delete;

  bool empty() const { return root_ == nullptr; }

  void Insert(Span* span);
  void Remove(Span* span);

  // Returns the shortest span of at least `n` pages, with the lowest address among equals; or null.
  Span* BestFit(Length n) const;
  // Returns the longest span, with the highest address among equals; or null.
  Span* Longest() const;

  // Calls visit(const Span*) for each span, the longest first, until it returns false.
  template <typename Visitor>
  void ForEachFromLongest(Visitor&& visit) const {
    static_cast<void>(VisitFromLongest(root_, visit));
  }

  // Crashes if order or heap property are broken. Returns the number of spans.
  size_t CheckInvariants() const;

 private:
  // Returns the result of the last visit.
  template <typename Visitor>
  static bool VisitFromLongest(const ListNode* node, Visitor& visit) {
    return node == nullptr ||
           (VisitFromLongest(node->next_node, visit) && visit(static_cast<const Span*>(node)) &&
            VisitFromLongest(node->prev_node, visit));
  }

  ListNode* root_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_CLASSIC_SPAN_TREE_H_
