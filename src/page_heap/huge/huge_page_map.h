// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Maps hugepages to their trackers.

#ifndef TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_MAP_H_
#define TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_MAP_H_

#include <cstddef>
#include <cstdint>

#include "page_heap/huge/huge_page.h"
#include "page_heap/huge/huge_page_tracker.h"
#include "pages/metadata_arena.h"

namespace tcmalloc {

// A radix tree of two levels. Trackers are made on demand and live for ever. Not thread safe.
class HugePageMap {
 public:
  constexpr explicit HugePageMap(MetadataArena& arena) : arena_(arena) {}
  HugePageMap(const HugePageMap&) = delete;
  HugePageMap& operator=(const HugePageMap&) = delete;

  // Makes room for [first, first + n). False if no memory can be had, or if the hugepages are
  // beyond kAddressBits.
  [[nodiscard]] bool Ensure(HugePage first, size_t n);

  // Returns the tracker of `page`; null if it has none.
  HugePageTracker* Get(HugePage page) const {
    if (page.index() >> kBits != 0 || root_ == nullptr) return nullptr;
    const Leaf* leaf = root_->leaves[page.index() >> kLeafBits];
    return leaf == nullptr ? nullptr : leaf->trackers[page.index() & (kLeafEntries - 1)];
  }

  // Returns the tracker of `page`, and makes it if there was none. Null if no memory can be had.
  // Requires Ensure to have succeeded for `page`.
  HugePageTracker* GetOrMake(HugePage page);

 private:
  static constexpr int kBits = kAddressBits - kHugePageShift;
  static constexpr int kLeafBits = 14;
  static constexpr size_t kLeafEntries = size_t{1} << kLeafBits;

  struct Leaf {
    HugePageTracker* trackers[kLeafEntries];
  };

  struct Root {
    Leaf* leaves[size_t{1} << (kBits - kLeafBits)];
  };

  // The arena's zero bytes are a node without entries, and cost nothing until they are used.
  template <typename Node>
  bool EnsureNode(Node*& node) {
    if (node == nullptr) node = static_cast<Node*>(arena_.Allocate(sizeof(Node), alignof(Node)));
    return node != nullptr;
  }

  MetadataArena& arena_;
  Root* root_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_HUGE_HUGE_PAGE_MAP_H_
