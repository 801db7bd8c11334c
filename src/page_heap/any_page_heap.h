// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Owns both page heaps, of which start-up chooses one.

#ifndef TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_

#include <new>

#include "page_heap/classic/page_heap.h"
#include "page_heap/huge/huge_page_heap.h"
#include "page_heap/page_heap.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

// Owns both page heaps. It is a SpanSource itself, for users that are made before the choice. The
// huge heap, whose lists are long, is made only if it is chosen.
template <typename System>
class AnyPageHeap {
 public:
  constexpr AnyPageHeap(System& system, PageMap& map, MetadataArena& arena)
      : system_(system), map_(map), arena_(arena), classic_(system, map, arena) {}
  AnyPageHeap(const AnyPageHeap&) = delete;
  AnyPageHeap& operator=(const AnyPageHeap&) = delete;

  // Chooses the page heap. Call before everything else, while no other thread does anything. Keeps
  // the classic one if there is no memory for the huge one.
  void Choose(PageHeapKind kind) {
    if (kind == chosen_->kind() || kind == PageHeapKind::kClassic) return;
    void* memory = arena_.Allocate(sizeof(Huge), alignof(Huge));
    if (memory != nullptr) chosen_ = new (memory) Huge(system_, map_, arena_);
  }
  PageHeap& chosen() const { return *chosen_; }

  Span* New(Length n) { return chosen_->New(n); }
  Span* NewNear(Length n, PageId near) { return chosen_->NewNear(n, near); }
  Span* NewAligned(Length n, Length alignment) { return chosen_->NewAligned(n, alignment); }
  void Delete(Span* span) { chosen_->Delete(span); }
  // Returns true if other processes may write to the memory: children share that of a file.
  bool is_shared() const { return system_.HasFile(); }

  void CheckInvariants() {
    if (chosen_ == &classic_) {
      classic_.CheckInvariants();
    } else {
      static_cast<Huge*>(chosen_)->CheckInvariants();
    }
  }

 private:
  using Huge = HugePageHeap<System>;

  System& system_;
  PageMap& map_;
  MetadataArena& arena_;
  ClassicPageHeap<System> classic_;
  PageHeap* chosen_ = &classic_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_
