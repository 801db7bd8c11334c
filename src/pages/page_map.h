// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Maps addresses to spans and size classes.

#ifndef TCMALLOC_PAGES_PAGE_MAP_H_
#define TCMALLOC_PAGES_PAGE_MAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/bits.h"
#include "base/check.h"
#include "pages/metadata_arena.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Two maps in one.
//
// The class window is a flat table with one byte per page for the addresses below
// window_limit(): the size class of small objects there, 0 for every other page. It is the one load
// of free's fast path. The heap asks the system for addresses inside the window, which grows with
// it; pages outside of it work too, by the slow path.
//
// The span map has an entry for each page, in leaves of many pages. A table has the leaves of the
// lowest addresses, where heaps lie, so that two loads lead to an entry; a radix tree of three
// levels has those of all other kAddressBits addresses.
//
// Readers take no lock, and any 64-bit value may be looked up. Writers hold the page heap's
// lock, or own the span. An entry is written before the address it describes is handed out, and
// whoever hands an address to another thread synchronises with it, so relaxed loads of entries
// suffice; nodes are published with release and read with acquire, since a reader with a wild
// pointer is synchronised with nobody.
class PageMap {
 public:
  // An entry of the span map: all about a page in one word, so that a reader sees parts that belong
  // together:
  //
  //     63 ............ 16   15 ......... 8   7 ......... 0
  //     address of the span   place in it      size class
  //
  // The place is the number of pages of the span before this one. It and the class are 0 but for
  // spans of small objects between RegisterSmall and UnregisterSmall.
  class Entry {
   public:
    constexpr Entry() = default;
    constexpr explicit Entry(uint64_t word) : word_(word) {}
    explicit Entry(Span* span) : word_(reinterpret_cast<uint64_t>(span) << kSpanShift) {
      TCMALLOC_DCHECK(this->span() == span);
    }
    Entry(Span* span, size_t place, uint8_t size_class) : Entry(span) {
      word_ |= place << kPlaceShift | size_class;
    }

    constexpr uint64_t word() const { return word_; }
    Span* span() const { return reinterpret_cast<Span*>(word_ >> kSpanShift); }
    // Returns the class of the small objects in the page, or 0 if there are none.
    constexpr uint8_t size_class() const { return static_cast<uint8_t>(word_); }
    // Returns the offset in its span of an address in the page. Requires a size class.
    size_t OffsetOf(const void* address) const {
      const auto place = static_cast<uint8_t>(word_ >> kPlaceShift);
      return Length(place).bytes() + reinterpret_cast<uintptr_t>(address) % kPageSize;
    }

    // The most pages that a span of small objects may have.
    static constexpr size_t kMostPlaces = 256;

   private:
    static constexpr int kPlaceShift = 8;
    static constexpr int kSpanShift = 16;
    static_assert(kSpanShift + kAddressBits <= 64);

    uint64_t word_ = 0;
  };

  constexpr explicit PageMap(MetadataArena& arena) : arena_(arena) {}
  PageMap(const PageMap&) = delete;
  PageMap& operator=(const PageMap&) = delete;

  // Makes `table`, with one zero byte for each page below `limit`, the class window. Called once,
  // before any page is registered.
  void SetWindow(uint8_t* table, uintptr_t limit) {
    window_ = table;
    ExtendWindow(limit);
  }
  // Says that the table now has a zero byte for each page below `limit`, which is larger than it
  // was. Called before pages are registered that the window did not have.
  void ExtendWindow(uintptr_t limit) {
    // Release pairs with the acquire in window_limit and publishes that the table is mapped.
    window_limit_.store(limit, std::memory_order_release);
  }
  uint8_t* window() const { return window_; }
  // Acquire pairs with the release in ExtendWindow.
  uintptr_t window_limit() const { return window_limit_.load(std::memory_order_acquire); }
  // The class of a valid reference r is the byte at this address + (r >> (kPageShift - 3)). Bit 63
  // of that sum is set.
  uintptr_t classes_by_reference() const {
    return reinterpret_cast<uintptr_t>(window_) - (uintptr_t{1} << (66 - kPageShift));
  }

  // Makes room for the entries of [first, first + n). False if no memory can be had, or if the
  // pages are beyond kAddressBits.
  [[nodiscard]] bool Ensure(PageId first, Length n);

  // Returns the entry of `page`, which is empty if it never had one. May be stale unless it has a
  // size class: see FindInUse.
  TCMALLOC_ALWAYS_INLINE Entry EntryOf(PageId page) const {
    const Leaf* leaf = FindLeaf(page);
    return TCMALLOC_LIKELY(leaf != nullptr) ? leaf->at(page) : Entry();
  }
  // Works as EntryOf for pages of the lowest addresses, until it is told not to. Returns an empty
  // entry for others, so that a fast path calls nothing.
  TCMALLOC_ALWAYS_INLINE Entry NearEntryOf(PageId page) const {
    const uintptr_t place = PlaceOf(page);
    // Acquire pairs with the release in Ensure.
    const size_t leaves = near_leaves_.load(std::memory_order_acquire);
    if (TCMALLOC_UNLIKELY(place >= leaves)) return Entry();
    // Acquire pairs with the release in EnsureNode.
    const Leaf* leaf =
        root_.load(std::memory_order_relaxed)->near[place].load(std::memory_order_acquire);
    return TCMALLOC_LIKELY(leaf != nullptr) ? leaf->at(page) : Entry();
  }
  // Makes NearEntryOf return empty entries from now on, so that fast paths lead to slow ones.
  // Called before threads ask.
  void HideNearEntries() {
    shows_near_entries_ = false;
    near_leaves_.store(0, std::memory_order_relaxed);
  }
  // Returns the span in the entry of `page`, or null.
  Span* Get(PageId page) const { return EntryOf(page).span(); }
  class Walker;

  // Returns the span in use that holds `address`, or null.
  Span* FindInUse(const void* address) const {
    const PageId page = PageId::Containing(address);
    Span* span = Get(page);
    return span != nullptr && span->in_use() && span->Contains(page) ? span : nullptr;
  }

  // Returns the span in use that holds the last page below `page` to have one, or null if none of
  // the `most` pages below it has. Skips what the map has no room for, so that it is quick to find
  // nothing.
  Span* FindInUseBelow(PageId page, Length most) const;

  // Returns the size class of small objects in a page of the class window, and 0 for any other
  // page. May be stale unless the caller keeps the page's owner from changing it.
  uint8_t ClassAt(PageId page) const {
    return page.address() < window_limit() ? ClassBelowLimit(page) : 0;
  }

  // Returns it for a page below a limit of the window that the caller has read.
  uint8_t ClassBelowLimit(PageId page) const {
    return __atomic_load_n(window_ + page.index(), __ATOMIC_RELAXED);
  }

  // Requires Ensure to have succeeded for `page`.
  void Set(PageId page, Span* span) { SetEntry(page, Entry(span)); }

  // Enters the first and last page of a span, which coalescing needs.
  void SetEnds(Span* span) {
    Set(span->first, span);
    if (span->length > Length(1)) Set(span->end() - Length(1), span);
  }

  // Enters every page of a span, in the span map alone, without a size class.
  void Register(Span* span);
  // Enters every page of a span of small objects, in both maps.
  void RegisterSmall(Span* span);
  // Removes the size class of a span from both maps.
  void UnregisterSmall(Span* span);
  // Sets the size class in the class window of one page of a span of small objects to that of the
  // span, or to 0. Called by the owner of the only object that begins in the page.
  void SetClassAt(PageId page, uint8_t size_class) {
    if (page.address() >= window_limit()) return;
    __atomic_store_n(window_ + page.index(), size_class, __ATOMIC_RELAXED);
  }

 private:
  static constexpr int kPageBits = kAddressBits - kPageShift;
  static constexpr int kLeafBits = 12;
  static constexpr int kMiddleBits = 12;
  static constexpr int kRootBits = kPageBits - kMiddleBits - kLeafBits;
  static constexpr size_t kLeafEntries = size_t{1} << kLeafBits;
  static constexpr size_t kMiddleEntries = size_t{1} << kMiddleBits;
  // With pages of 8 KiB those of the first 256 GiB, in 64 KiB of which one page is touched.
  static constexpr size_t kNearLeaves = size_t{1} << 13;
  static_assert(kRootBits > 0);

  struct Leaf {
    std::atomic<uint64_t> words[kLeafEntries];

    Entry at(PageId page) const {
      return Entry(words[page.index() & (kLeafEntries - 1)].load(std::memory_order_relaxed));
    }
  };
  struct Middle {
    std::atomic<Leaf*> leaves[kMiddleEntries];
  };
  struct Root {
    std::atomic<Leaf*> near[kNearLeaves];
    std::atomic<Middle*> middles[size_t{1} << kRootBits];
  };

  // Returns the place of the leaf of `page` among all leaves.
  static constexpr uintptr_t PlaceOf(PageId page) { return page.index() >> kLeafBits; }

  // Returns the leaf with the entry of `page`, or null.
  TCMALLOC_ALWAYS_INLINE Leaf* FindLeaf(PageId page) const {
    const uintptr_t place = PlaceOf(page);
    return TCMALLOC_LIKELY(place < kNearLeaves) ? NearLeaf(place) : FindFarLeaf(place);
  }
  // Requires place < kNearLeaves.
  TCMALLOC_ALWAYS_INLINE Leaf* NearLeaf(uintptr_t place) const {
    // Acquire pairs with the release in EnsureNode, here and at the leaf.
    const Root* root = root_.load(std::memory_order_acquire);
    if (TCMALLOC_UNLIKELY(root == nullptr)) return nullptr;
    // Acquire pairs with the release in EnsureNode.
    return root->near[place].load(std::memory_order_acquire);
  }
  TCMALLOC_NOINLINE Leaf* FindFarLeaf(uintptr_t place) const;
  [[nodiscard]] bool EnsureLeaf(Root* root, uintptr_t place);

  void SetEntry(PageId page, Entry entry);
  void SetClasses(const Span* span, uint8_t size_class);
  template <typename Node>
  Node* EnsureNode(std::atomic<Node*>& slot);

  MetadataArena& arena_;
  uint8_t* window_ = nullptr;
  std::atomic<uintptr_t> window_limit_{0};
  std::atomic<Root*> root_{nullptr};
  // The leaves of which NearEntryOf reads entries: kNearLeaves once there is a root, unless they
  // are hidden. One comparison tells a fast path that it may go on.
  std::atomic<size_t> near_leaves_{0};
  bool shows_near_entries_ = true;
};

// Looks up pages of which most lie near the one before. The tree is walked once for each of its
// leaves.
class PageMap::Walker {
 public:
  explicit Walker(const PageMap& map) : map_(map) {}

  // Works as PageMap::EntryOf.
  TCMALLOC_ALWAYS_INLINE Entry EntryOf(PageId page) {
    const uintptr_t place = PlaceOf(page);
    if (TCMALLOC_UNLIKELY(place != place_)) {
      const Leaf* leaf = map_.FindLeaf(page);
      if (TCMALLOC_UNLIKELY(leaf == nullptr)) return Entry();
      leaf_ = leaf;
      place_ = place;
    }
    return leaf_->at(page);
  }

 private:
  const PageMap& map_;
  const Leaf* leaf_ = nullptr;
  uintptr_t place_ = UINTPTR_MAX;  // of the leaf in the tree; no leaf has this one
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGES_PAGE_MAP_H_
