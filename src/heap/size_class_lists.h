// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The lists of each size class that threads share: a transfer cache in front of a central free
// list.

#ifndef TCMALLOC_HEAP_SIZE_CLASS_LISTS_H_
#define TCMALLOC_HEAP_SIZE_CLASS_LISTS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "central/central_free_list.h"
#include "central/central_lists.h"
#include "central/span_zones.h"
#include "page_heap/system_page_heap.h"
#include "pages/free_link.h"
#include "pages/page_map.h"
#include "size_class/size_classes.h"
#include "transfer/batch_source.h"
#include "transfer/chain_stack.h"
#include "transfer/transfer_cache.h"

namespace tcmalloc {

using Spans = SpanZones<PageHeaps>;
using Central = CentralLists<Spans>;
using Transfer = TransferCache<Central>;

extern template class CentralFreeList<Spans>;
extern template class CentralLists<Spans>;
extern template class TransferCache<Central>;

struct ListsOfClass {
  Transfer transfer;
  Central central;
};

// Memory for the lists of all classes. It is separate from the heap, which is not all zero, so that
// it lies in .bss: unused lists then take up neither resident memory nor room in the file.
struct SizeClassMemory {
  alignas(ListsOfClass) char bytes[(kSizeClassCount - 1) * sizeof(ListsOfClass)];
  SpareArrays spare_arrays;
};

// Makes the lists of a class when they are first asked for, adjacent in the order of first use.
// Many programs use half of the classes or fewer, and thus touch no memory for the others. Making
// them cannot fail. Thread safe.
class SizeClassLists {
 public:
  using Source = Transfer;

  constexpr SizeClassLists(SizeClassMemory& memory, PageHeaps& page_heaps, PageMap& page_map,
                           const LinkCodec& codec, ChainArrays& arrays, MetadataArena& arena)
      : memory_(memory),
        spans_(page_heaps),
        page_map_(page_map),
        codec_(codec),
        arrays_(arrays),
        arena_(arena) {}
  SizeClassLists(const SizeClassLists&) = delete;
  SizeClassLists& operator=(const SizeClassLists&) = delete;

  // Sets the objects of a full chain, as far as the class admits it; 0 keeps each class's own
  // number. Called before everything else.
  void set_batch(uint64_t objects) { batch_ = objects; }
  // Sets the number of CPUs among which the central free lists of a class may be divided. Called
  // before everything else.
  void set_cpus(uint32_t cpus) { cpus_ = cpus; }

  // The transfer cache of class `c`, as a SourceTable gives it.
  Transfer& Ensure(uint8_t c) TCMALLOC_EXCLUDES(lock_) {
    ListsOfClass* lists = FindLists(c);
    if (TCMALLOC_UNLIKELY(lists == nullptr)) lists = &Make(c);
    if constexpr (kParanoidChecks) DivideIfUsed(lists->central);
    return lists->transfer;
  }
  Transfer& operator[](uint8_t c) const {
    TCMALLOC_DCHECK(FindLists(c) != nullptr);
    return FindLists(c)->transfer;
  }
  Transfer* Find(uint8_t c) const {
    ListsOfClass* lists = FindLists(c);
    return lists != nullptr ? &lists->transfer : nullptr;
  }
  // Returns the central free list behind the transfer cache of a class for which Ensure was called.
  Central& central(uint8_t c) const { return FindLists(c)->central; }

  // Calls f(c, transfer, central) for each class that has lists, in the order of classes.
  template <typename F>
  void ForEach(F f) const {
    for (size_t i = 1; i < kSizeClassCount; ++i) {
      const auto c = static_cast<uint8_t>(i);
      ListsOfClass* lists = FindLists(c);
      if (lists != nullptr) f(c, lists->transfer, lists->central);
    }
  }

 private:
  // Acquire pairs with the release in Make and publishes the initialized lists.
  ListsOfClass* FindLists(uint8_t c) const { return lists_[c].load(std::memory_order_acquire); }
  TCMALLOC_COLD ListsOfClass& Make(uint8_t c) TCMALLOC_EXCLUDES(lock_);
  // Paranoid builds show on any machine what happens where many CPUs need a class. Classes that are
  // hardly used stay as they are, because what is left of exhausted memory is little.
  static void DivideIfUsed(Central& central) {
    constexpr size_t kFewSpans = 4;
    if (central.count() == 1 && central.stats().spans > kFewSpans) central.Divide();
  }
  uint32_t BatchFor(uint8_t c) const;

  SpinLock lock_{LockRank::kSizeClassLists};
  size_t made_ TCMALLOC_GUARDED_BY(lock_) = 0;  // classes that have lists
  SizeClassMemory& memory_;
  Spans spans_;
  PageMap& page_map_;
  const LinkCodec& codec_;
  ChainArrays& arrays_;
  MetadataArena& arena_;
  uint64_t batch_ = 0;
  uint32_t cpus_ = 1;
  std::atomic<ListsOfClass*> lists_[kSizeClassCount] = {};
};
static_assert(SourceTable<SizeClassLists>);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_SIZE_CLASS_LISTS_H_
