// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/page_map.h"

#include <algorithm>
#include <cstdint>

namespace tcmalloc {

template <typename Node>
Node* PageMap::EnsureNode(std::atomic<Node*>& slot) {
  Node* node = slot.load(std::memory_order_relaxed);
  if (node != nullptr) return node;
  // The arena's zero bytes are a node without entries.
  node = static_cast<Node*>(arena_.Allocate(sizeof(Node), alignof(Node)));
  // Release pairs with the acquire in FindLeaf and publishes the node's zero bytes.
  if (node != nullptr) slot.store(node, std::memory_order_release);
  return node;
}

bool PageMap::Ensure(PageId first, Length n) {
  const PageId end = first + n;
  if ((end - Length(1)).index() >> kPageBits != 0) return false;
  Root* root = EnsureNode(root_);
  if (root == nullptr) return false;
  for (uintptr_t index = first.index(); index < end.index();
       index = (index | (kLeafEntries - 1)) + 1) {
    Middle* middle = EnsureNode(root->middles[index >> (kMiddleBits + kLeafBits)]);
    if (middle == nullptr) return false;
    if (EnsureNode(middle->leaves[index >> kLeafBits & (kMiddleEntries - 1)]) == nullptr) {
      return false;
    }
  }
  return true;
}

Span* PageMap::FindInUseBelow(PageId page, Length most) const {
  const uintptr_t end = page.index() - std::min<uintptr_t>(page.index(), most.pages());
  uintptr_t index = page.index();
  while (index > end) {
    const PageId below(index - 1);
    const Leaf* leaf = FindLeaf(below);
    if (leaf == nullptr) {
      index = below.index() & ~uintptr_t{kLeafEntries - 1};
      continue;
    }
    Span* span = leaf->at(below);
    if (span != nullptr && span->in_use() && span->Contains(below)) return span;
    --index;
  }
  return nullptr;
}

void PageMap::SetClasses(const Span* span, uint8_t size_class) {
  if (span->end().address() > window_limit()) return;
  uint8_t* entry = window_ + span->first.index();
  for (size_t n = span->length.pages(); n > 0; --n) {
    __atomic_store_n(entry++, size_class, __ATOMIC_RELAXED);
  }
}

void PageMap::Register(Span* span) {
  for (PageId page = span->first; page < span->end(); ++page) Set(page, span);
}

void PageMap::RegisterSmall(Span* span) {
  Register(span);
  SetClasses(span, span->size_class);
}

void PageMap::UnregisterSmall(const Span* span) { SetClasses(span, 0); }

}  // namespace tcmalloc
