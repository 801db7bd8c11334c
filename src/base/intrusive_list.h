// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A doubly linked list whose links live in the elements.

#ifndef TCMALLOC_BASE_INTRUSIVE_LIST_H_
#define TCMALLOC_BASE_INTRUSIVE_LIST_H_

#include <cstddef>

#include "base/check.h"

namespace tcmalloc {

// Base of every element. An element is unlinked (both links null) or in exactly one list.
struct ListNode {
  ListNode* next_node = nullptr;
  ListNode* prev_node = nullptr;

  bool linked() const { return next_node != nullptr; }
};

// List of T, where T derives from ListNode. The list owns nothing; an element is in at most one
// list. The head links to itself lazily, so a zeroed list is a valid empty one. Not thread safe.
template <typename T>
class IntrusiveList {
 public:
  constexpr IntrusiveList() = default;
  IntrusiveList(const IntrusiveList&) = delete;
  IntrusiveList& operator=(const IntrusiveList&) = delete;

  bool empty() const { return head_.next_node == nullptr || head_.next_node == &head_; }
  size_t size() const { return size_; }

  // Returns null if empty.
  T* front() const { return empty() ? nullptr : static_cast<T*>(head_.next_node); }
  T* back() const { return empty() ? nullptr : static_cast<T*>(head_.prev_node); }
  // Returns null at the end.
  T* next(const T* element) const {
    ListNode* node = element->ListNode::next_node;
    return node == &head_ ? nullptr : static_cast<T*>(node);
  }

  void PushFront(T* element) {
    SelfLink();
    InsertBetween(element, &head_, head_.next_node);
  }

  void PushBack(T* element) {
    SelfLink();
    InsertBetween(element, head_.prev_node, &head_);
  }

  void Remove(T* element) {
    ListNode* node = element;
    TCMALLOC_DCHECK(node->linked());
    node->prev_node->next_node = node->next_node;
    node->next_node->prev_node = node->prev_node;
    node->next_node = nullptr;
    node->prev_node = nullptr;
    --size_;
  }

  // Empties the list without touching its elements, which still have their links.
  void Abandon() {
    head_ = {};
    size_ = 0;
  }

  T* PopFront() {
    T* element = front();
    if (element != nullptr) Remove(element);
    return element;
  }

 private:
  void SelfLink() {
    if (head_.next_node != nullptr) return;
    head_.next_node = &head_;
    head_.prev_node = &head_;
  }

  void InsertBetween(ListNode* node, ListNode* before, ListNode* after) {
    TCMALLOC_DCHECK(!node->linked());
    node->prev_node = before;
    node->next_node = after;
    before->next_node = node;
    after->prev_node = node;
    ++size_;
  }

  ListNode head_;
  size_t size_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_INTRUSIVE_LIST_H_
