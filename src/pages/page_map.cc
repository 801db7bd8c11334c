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
  // Release pairs with the acquire in NearEntryOf, NearLeaf and FindFarLeaf and publishes the
  // node's zero bytes.
  if (node != nullptr) slot.store(node, std::memory_order_release);
  return node;
}

bool PageMap::EnsureLeaf(Root* root, uintptr_t place) {
  if (place < kNearLeaves) return EnsureNode(root->near[place]) != nullptr;
  Middle* middle = EnsureNode(root->middles[place >> kMiddleBits]);
  return middle != nullptr && EnsureNode(middle->leaves[place % kMiddleEntries]) != nullptr;
}

bool PageMap::Ensure(PageId first, Length n) {
  const uintptr_t last = (first + n - Length(1)).index();
  if (last >> kPageBits != 0) return false;
  Root* root = EnsureNode(root_);
  if (root == nullptr) return false;
  if (shows_near_entries_ && near_leaves_.load(std::memory_order_relaxed) == 0) {
    // Release pairs with the acquire in NearEntryOf and publishes the root.
    near_leaves_.store(kNearLeaves, std::memory_order_release);
  }
  for (uintptr_t place = PlaceOf(first); place <= last >> kLeafBits; ++place) {
    if (!EnsureLeaf(root, place)) return false;
  }
  return true;
}

PageMap::Leaf* PageMap::FindFarLeaf(uintptr_t place) const {
  if (place >> (kRootBits + kMiddleBits) != 0) return nullptr;
  // Acquire pairs with the release in EnsureNode, here and at the nodes below.
  const Root* root = root_.load(std::memory_order_acquire);
  if (root == nullptr) return nullptr;
  // Acquire pairs with the release in EnsureNode.
  const Middle* middle = root->middles[place >> kMiddleBits].load(std::memory_order_acquire);
  if (middle == nullptr) return nullptr;
  // Acquire pairs with the release in EnsureNode.
  return middle->leaves[place % kMiddleEntries].load(std::memory_order_acquire);
}

void PageMap::SetEntry(PageId page, Entry entry) {
  std::atomic<uint64_t>& word = FindLeaf(page)->words[page.index() % kLeafEntries];
  word.store(entry.word(), std::memory_order_relaxed);
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
    Span* span = leaf->at(below).span();
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
  const size_t pages = span->length.pages();
  TCMALLOC_DCHECK(pages <= Entry::kMostPlaces);
  for (size_t place = 0; place < pages; ++place) {
    SetEntry(span->first + Length(place), Entry(span, place, span->size_class));
  }
  SetClasses(span, span->size_class);
}

void PageMap::UnregisterSmall(Span* span) {
  Register(span);
  SetClasses(span, 0);
}

}  // namespace tcmalloc
