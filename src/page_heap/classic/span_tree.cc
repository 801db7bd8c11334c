// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "page_heap/classic/span_tree.h"

#include <cstdint>

#include "base/check.h"

namespace tcmalloc {
namespace {

const Span* AsSpan(const ListNode* node) { return static_cast<const Span*>(node); }

uint64_t Priority(const ListNode* node) {
  // Fibonacci hashing: neighbouring pages get priorities far apart.
  return AsSpan(node)->first.index() * 0x9e3779b97f4a7c15u;
}

bool Less(const ListNode* a, const ListNode* b) {
  const Span* x = AsSpan(a);
  const Span* y = AsSpan(b);
  return x->length != y->length ? x->length < y->length : x->first < y->first;
}

ListNode*& Left(ListNode* node) { return node->prev_node; }
ListNode*& Right(ListNode* node) { return node->next_node; }

// Divides the tree `node` into two trees: the nodes less than `pivot`, and the others.
void Split(ListNode* node, const ListNode* pivot, ListNode** less, ListNode** greater) {
  while (node != nullptr) {
    if (Less(node, pivot)) {
      *less = node;
      less = &Right(node);
      node = *less;
    } else {
      *greater = node;
      greater = &Left(node);
      node = *greater;
    }
  }
  *less = nullptr;
  *greater = nullptr;
}

// Puts the union of two trees, of which `less` is wholly less than `greater`, at `link`.
void Join(ListNode* less, ListNode* greater, ListNode** link) {
  while (less != nullptr && greater != nullptr) {
    if (Priority(less) > Priority(greater)) {
      *link = less;
      link = &Right(less);
      less = *link;
    } else {
      *link = greater;
      link = &Left(greater);
      greater = *link;
    }
  }
  *link = less != nullptr ? less : greater;
}

// `low` and `high` are exclusive bounds, null for none.
size_t CheckSubtree(const ListNode* node, const ListNode* low, const ListNode* high) {
  if (node == nullptr) return 0;
  TCMALLOC_CHECK(low == nullptr || Less(low, node));
  TCMALLOC_CHECK(high == nullptr || Less(node, high));
  for (const ListNode* child : {node->prev_node, node->next_node}) {
    if (child != nullptr) TCMALLOC_CHECK_LE(Priority(child), Priority(node));
  }
  return 1 + CheckSubtree(node->prev_node, low, node) + CheckSubtree(node->next_node, node, high);
}

}  // namespace

void SpanTree::Insert(Span* span) {
  const uint64_t priority = Priority(span);
  ListNode** link = &root_;
  while (*link != nullptr && Priority(*link) >= priority) {
    link = Less(span, *link) ? &Left(*link) : &Right(*link);
  }
  Split(*link, span, &Left(span), &Right(span));
  *link = span;
}

void SpanTree::Remove(Span* span) {
  ListNode** link = &root_;
  while (*link != span) {
    TCMALLOC_DCHECK(*link != nullptr);
    link = Less(span, *link) ? &Left(*link) : &Right(*link);
  }
  Join(Left(span), Right(span), link);
  Left(span) = nullptr;
  Right(span) = nullptr;
}

Span* SpanTree::BestFit(Length n) const {
  ListNode* best = nullptr;
  for (ListNode* node = root_; node != nullptr;) {
    if (AsSpan(node)->length >= n) {
      best = node;
      node = Left(node);
    } else {
      node = Right(node);
    }
  }
  return static_cast<Span*>(best);
}

Span* SpanTree::Longest() const {
  ListNode* node = root_;
  while (node != nullptr && Right(node) != nullptr) node = Right(node);
  return static_cast<Span*>(node);
}

size_t SpanTree::CheckInvariants() const { return CheckSubtree(root_, nullptr, nullptr); }

}  // namespace tcmalloc
