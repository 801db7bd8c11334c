// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Either page heap, as start-up decides.

#ifndef TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_
#define TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <new>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "page_heap/classic/page_heap.h"
#include "page_heap/free_runs.h"
#include "page_heap/huge/huge_page_heap.h"
#include "page_heap/stats.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc {

enum class PageHeapKind : uint8_t { kClassic, kHuge };

// Has the interface of both and forwards it to the chosen one. The huge heap, whose lists are long,
// is made only if it is chosen.
template <typename System>
class AnyPageHeap {
 public:
  constexpr AnyPageHeap(System& system, PageMap& map, MetadataArena& arena)
      : system_(system), map_(map), arena_(arena), classic_(system, map, arena) {}
  AnyPageHeap(const AnyPageHeap&) = delete;
  AnyPageHeap& operator=(const AnyPageHeap&) = delete;

  // Call before everything else, while no other thread does anything. Where there is no memory for
  // the huge heap, it stays the classic one.
  void Choose(PageHeapKind kind) {
    if (kind == PageHeapKind::kClassic || huge_ != nullptr) return;
    void* memory = arena_.Allocate(sizeof(Huge), alignof(Huge));
    if (memory != nullptr) huge_ = new (memory) Huge(system_, map_, arena_);
  }
  PageHeapKind kind() const { return IsClassic() ? PageHeapKind::kClassic : PageHeapKind::kHuge; }

  Span* New(Length n) { return TCMALLOC_LIKELY(IsClassic()) ? classic_.New(n) : huge_->New(n); }
  Span* NewAligned(Length n, Length alignment) {
    return With([&](auto& heap) { return heap.NewAligned(n, alignment); });
  }
  void Delete(Span* span) {
    if (TCMALLOC_LIKELY(IsClassic())) {
      classic_.Delete(span);
    } else {
      huge_->Delete(span);
    }
  }
  bool TryExtend(Span* span, Length n) {
    return With([&](auto& heap) { return heap.TryExtend(span, n); });
  }
  void Truncate(Span* span, Length n) {
    With([&](auto& heap) { heap.Truncate(span, n); });
  }

  Length ReleaseAtLeast(Length n, ReleaseCause cause = ReleaseCause::kProgram) {
    return With([&](auto& heap) { return heap.ReleaseAtLeast(n, cause); });
  }
  Length ReleaseUnused(uint64_t now, Length most, ReleaseCause cause = ReleaseCause::kAllocator) {
    return With([&](auto& heap) { return heap.ReleaseUnused(now, most, cause); });
  }
  void NoteIdleSince(uint64_t since) {
    With([&](auto& heap) { heap.NoteIdleSince(since); });
  }
  void set_release_half_life(uint64_t ns) {
    With([&](auto& heap) { heap.set_release_half_life(ns); });
  }
  void set_release_rate(double rate) {
    With([&](auto& heap) { heap.set_release_rate(rate); });
  }
  double release_rate() {
    return With([](auto& heap) { return heap.release_rate(); });
  }
  void set_limit(Length limit) {
    With([&](auto& heap) { heap.set_limit(limit); });
  }
  Length limit() {
    return With([](auto& heap) { return heap.limit(); });
  }
  Length committed() const { return IsClassic() ? classic_.committed() : huge_->committed(); }
  uint64_t spans_served() const {
    return IsClassic() ? classic_.spans_served() : huge_->spans_served();
  }
  Length free_now() const { return IsClassic() ? classic_.free_now() : huge_->free_now(); }
  Length freed() const { return IsClassic() ? classic_.freed() : huge_->freed(); }
  void MakeFreeDue() {
    With([](auto& heap) { heap.MakeFreeDue(); });
  }
  void set_aggressive_decommit(bool on) {
    With([&](auto& heap) { heap.set_aggressive_decommit(on); });
  }
  bool aggressive_decommit() {
    return With([](auto& heap) { return heap.aggressive_decommit(); });
  }
  void set_growth(Length least) {
    With([&](auto& heap) { heap.set_growth(least); });
  }
  void set_growth(Length least, Length most) {
    With([&](auto& heap) { heap.set_growth(least, most); });
  }

  // Changes nothing in the classic heap, which knows no hugepages.
  void set_hugepages(const TransparentHugepages& setting) {
    if (!IsClassic()) huge_->set_hugepages(setting);
  }
  HugePageStats huge_stats() { return IsClassic() ? HugePageStats() : huge_->huge_stats(); }

  PageHeapStats stats() {
    return With([](auto& heap) { return heap.stats(); });
  }
  void CountFreeRuns(FreeRunCounts* counts) {
    With([&](auto& heap) { heap.CountFreeRuns(counts); });
  }
  template <typename Visitor>
  void ForEachSpan(Visitor&& visit) {
    With([&](auto& heap) { heap.ForEachSpan(visit); });
  }
  void CheckInvariants() {
    With([](auto& heap) { heap.CheckInvariants(); });
  }

 private:
  using Huge = HugePageHeap<System>;

  bool IsClassic() const { return huge_ == nullptr; }

  template <typename F>
  auto With(F f) {
    return IsClassic() ? f(classic_) : f(*huge_);
  }

  System& system_;
  PageMap& map_;
  MetadataArena& arena_;
  ClassicPageHeap<System> classic_;
  Huge* huge_ = nullptr;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PAGE_HEAP_ANY_PAGE_HEAP_H_
