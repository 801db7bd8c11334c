// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The central free lists of one size class: one, or several among which the CPUs are divided.

#ifndef TCMALLOC_CENTRAL_CENTRAL_LISTS_H_
#define TCMALLOC_CENTRAL_CENTRAL_LISTS_H_

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <new>

#include "base/attributes.h"
#include "base/relaxed.h"
#include "central/central_free_list.h"
#include "page_heap/span_source.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"
#include "system/rseq.h"

namespace tcmalloc {

// A ChainSource. Begins with one list. Whenever threads often wait for each other at a list, there
// become twice as many, up to the number that was allowed; they stay. Each CPU takes from the list
// of its own, and an object goes back to the list that owns its span, whoever frees it.
//
// A list that has nothing left takes from another one that has much before it asks for memory, so
// that the others hold at most kMostUntaken bytes and two spans each that it could have had. When
// no memory can be had, it takes what there is. docs/decisions/0110-lists-for-groups-of-cpus.md.
//
// Thread safe. `kCurrentCpu` returns the number of the CPU on which the thread runs.
template <SpanSource PageHeap, uint32_t (*kCurrentCpu)() = CurrentCpuOrZero>
class CentralLists {
 public:
  using List = CentralFreeList<PageHeap>;

  static constexpr uint32_t kLineObjects = List::kLineObjects;
  static constexpr uint32_t kMostLists = List::kMostOfClass;

  constexpr CentralLists() = default;

  // There become at most `most` lists, rounded down to a power of two.
  void Initialize(uint8_t size_class, PageHeap& page_heap, PageMap& page_map,
                  const LinkCodec& codec, MetadataArena& arena, uint32_t most = 1) {
    size_class_ = size_class;
    most_ = std::bit_floor(std::clamp(most, 1U, kMostLists));
    page_heap_ = &page_heap;
    page_map_ = &page_map;
    codec_ = &codec;
    arena_ = &arena;
    const SizeClassInfo& info = kSizeClasses[size_class];
    free_bits_.Initialize(arena, info.objects, info.size);
    first_.Initialize(size_class, page_heap, page_map, codec, free_bits_);
  }

  // The functions of CentralFreeList, for all lists together.
  Chain Fetch(uint32_t wanted) { return FetchTo(nullptr, wanted); }
  uint32_t FetchArray(void** out, uint32_t wanted) { return FetchTo(out, wanted).count; }
  Chain FetchLine();
  void Insert(Chain chain) {
    if (TCMALLOC_LIKELY(count() == 1)) {
      first_.Insert(chain);
      DivideIfCrowded(first_);
    } else {
      InsertDivided(chain);
    }
  }
  // Returns the bytes of the spans of the list of this CPU. An estimate.
  TCMALLOC_ALWAYS_INLINE size_t SpanBytes() { return Own().span_bytes(); }
  // Says so of the list of this CPU.
  bool IsSparse() { return Own().IsSparse(); }
  bool IsFree(const void* object) {
    bool is_free = false;
    ForEachList([&](List& list) { is_free = is_free || list.IsFree(object); });
    return is_free;
  }
  void CheckFreeObjects(bool fresh, size_t* most) {
    ForEachList([=](List& list) { list.CheckFreeObjects(fresh, most); });
  }
  CentralStats stats();
  void CheckInvariants() {
    ForEachList([](List& list) { list.CheckInvariants(); });
  }

  // The number of lists.
  uint32_t count() const {
    // Acquire pairs with the release in DivideIf and publishes the lists.
    return count_.load(std::memory_order_acquire);
  }
  // Doubles the number of lists, if that is allowed and there is memory.
  TCMALLOC_COLD void Divide() {
    DivideIf([] { return true; });
  }

 private:
  // A list that has fewer bytes of freed objects is left alone by those of other CPUs.
  static constexpr size_t kMostUntaken = size_t{64} << 10;

  // A list beside which nothing else lies that CPUs write to.
  struct alignas(List::kLineBytes) OwnLines {
    List list;
  };

  List& list(uint32_t i) { return i == 0 ? first_ : *others_[i - 1]; }
  TCMALLOC_ALWAYS_INLINE List& Own() { return list(kCurrentCpu() & (count() - 1)); }
  template <typename F>
  void ForEachList(F f) {
    const uint32_t lists = count();
    for (uint32_t i = 0; i < lists; ++i) f(list(i));
  }

  TCMALLOC_ALWAYS_INLINE void DivideIfCrowded(const List& list) {
    if (TCMALLOC_UNLIKELY(list.is_crowded()) && count() < most_) DivideCrowded(list);
  }
  // Returns true if the list has more than it may keep from CPUs that need memory.
  bool HasMuch(const List& list) const {
    const SizeClassInfo& info = kSizeClasses[size_class_];
    return list.free_bytes() > std::max(kMostUntaken, size_t{2} * info.objects * info.size);
  }
  Chain FetchTo(void** out, uint32_t wanted) {
    if (TCMALLOC_UNLIKELY(count() > 1)) return FetchDivided(out, wanted);
    const Chain chain = first_.FetchTo(out, wanted);
    DivideIfCrowded(first_);
    return chain;
  }
  template <typename Condition>
  void DivideIf(Condition condition);
  // The crowd was there before the last division if another thread divided meanwhile.
  TCMALLOC_COLD void DivideCrowded(const List& list) {
    DivideIf([&list] { return list.is_crowded(); });
  }
  TCMALLOC_COLD bool AddLists(uint32_t lists);
  TCMALLOC_NOINLINE Chain FetchDivided(void** out, uint32_t wanted);
  template <typename FetchFrom>
  Chain FetchOfOthers(uint32_t own, FetchFrom fetch);
  TCMALLOC_NOINLINE void InsertDivided(Chain chain);
  TCMALLOC_NOINLINE ObjectReference InsertBlock(ObjectReference next, const void** before,
                                                typename List::Drained* drained);

  uint8_t size_class_ = 0;
  std::atomic<bool> is_dividing_{false};
  uint32_t most_ = 1;
  std::atomic<uint32_t> count_{1};
  PageHeap* page_heap_ = nullptr;
  PageMap* page_map_ = nullptr;
  const LinkCodec* codec_ = nullptr;
  MetadataArena* arena_ = nullptr;
  FreeBitsPool free_bits_;
  List first_;
  List** others_ = nullptr;  // those behind the first, from the first division on
};

// Takes from any list, because the list of the CPU may have nothing, and no memory is asked for.
template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
Chain CentralLists<PageHeap, kCurrentCpu>::FetchLine() {
  const uint32_t number = kCurrentCpu() & (count() - 1);
  const Chain line = list(number).FetchLine();
  if (!line.empty()) return line;
  return FetchOfOthers(number, [](List& other) { return other.FetchLine(); });
}

template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
CentralStats CentralLists<PageHeap, kCurrentCpu>::stats() {
  CentralStats sum;
  ForEachList([&sum](List& list) {
    const CentralStats stats = list.stats();
    sum.spans += stats.spans;
    sum.span_bytes += stats.span_bytes;
    sum.allocated_objects += stats.allocated_objects;
    sum.free_objects += stats.free_objects;
    sum.uncarved_objects += stats.uncarved_objects;
    sum.untouched_objects += stats.untouched_objects;
  });
  return sum;
}

// Makes as many lists as there are. Returns false if no memory can be had.
template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
bool CentralLists<PageHeap, kCurrentCpu>::AddLists(uint32_t lists) {
  if (others_ == nullptr) {
    others_ = static_cast<List**>(arena_->Allocate((most_ - 1) * sizeof(*others_), alignof(List*)));
  }
  if (others_ == nullptr) return false;
  auto* added =
      static_cast<OwnLines*>(arena_->Allocate(lists * sizeof(OwnLines), alignof(OwnLines)));
  if (added == nullptr) return false;
  for (uint32_t i = 0; i < lists; ++i) {
    List* list = &(new (added + i) OwnLines)->list;
    list->Initialize(size_class_, *page_heap_, *page_map_, *codec_, free_bits_,
                     static_cast<uint8_t>(lists + i));
    others_[lists + i - 1] = list;
  }
  return true;
}

template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
template <typename Condition>
void CentralLists<PageHeap, kCurrentCpu>::DivideIf(Condition condition) {
  // Acquire pairs with the release in DivideIf: what the last division did is in place.
  if (is_dividing_.exchange(true, std::memory_order_acquire)) return;
  const uint32_t lists = count_.load(std::memory_order_relaxed);
  if (lists < most_ && condition() && AddLists(lists)) {
    // Release pairs with the acquire in count.
    count_.store(2 * lists, std::memory_order_release);
    ForEachList([](List& list) { list.ForgetCrowd(); });
  }
  // Release pairs with the acquire in DivideIf.
  is_dividing_.store(false, std::memory_order_release);
}

// Returns the first chain that is not empty of those that `fetch` returns for the lists but `own`.
template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
template <typename FetchFrom>
Chain CentralLists<PageHeap, kCurrentCpu>::FetchOfOthers(uint32_t own, FetchFrom fetch) {
  const uint32_t lists = count();
  for (uint32_t i = 1; i < lists; ++i) {
    const Chain chain = fetch(list((own + i) & (lists - 1)));
    if (!chain.empty()) return chain;
  }
  return {};
}

template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
TCMALLOC_NOINLINE Chain CentralLists<PageHeap, kCurrentCpu>::FetchDivided(void** out,
                                                                          uint32_t wanted) {
  const uint32_t number = kCurrentCpu() & (count() - 1);
  List& own = list(number);
  Chain chain = own.FetchAtHand(out, wanted);
  DivideIfCrowded(own);
  if (!chain.empty()) return chain;
  chain = FetchOfOthers(number, [=, this](List& other) {
    return HasMuch(other) ? other.FetchAtHand(out, wanted) : Chain();
  });
  if (chain.empty()) chain = own.FetchTo(out, wanted);
  if (!chain.empty()) return chain;
  return FetchOfOthers(number, [=](List& other) { return other.FetchLeft(out, wanted); });
}

// Puts back the next objects of a chain, each into the list of its span. A function of its own, so
// that its stack is free again when spans are deleted.
template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
TCMALLOC_NOINLINE ObjectReference CentralLists<PageHeap, kCurrentCpu>::InsertBlock(
    ObjectReference next, const void** before, typename List::Drained* drained) {
  typename List::Block block;
  next = first_.LookUp(next, before, &block);
  while (block.count > 0) {
    const typename List::Group group = block.groups[0];
    const uint32_t number = first_.NumberOfOwner(group.span);
    // Two threads that free one object may find its span in use for something else.
    if (TCMALLOC_UNLIKELY(number >= count())) first_.CrashOnUnfreed(group);
    const uint32_t left = block.count;
    list(number).PutBackOwn(&block, drained);
    if (TCMALLOC_UNLIKELY(block.count == left)) first_.CrashOnUnfreed(group);
  }
  return next;
}

template <SpanSource PageHeap, uint32_t (*kCurrentCpu)()>
TCMALLOC_NOINLINE void CentralLists<PageHeap, kCurrentCpu>::InsertDivided(Chain chain) {
  typename List::Drained drained;
  const void* before = nullptr;
  for (ObjectReference next = chain.head; next != codec_->end;) {
    next = InsertBlock(next, &before, &drained);
  }
  first_.Release(&drained);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_CENTRAL_CENTRAL_LISTS_H_
