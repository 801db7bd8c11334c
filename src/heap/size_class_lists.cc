// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/size_class_lists.h"

#include <algorithm>
#include <new>

namespace tcmalloc {
namespace {

// The most bytes of one size class that its transfer cache holds.
constexpr size_t kMaxTransferBytes = size_t{1} << 20;
// Paranoid builds divide the central free lists on any machine.
constexpr uint32_t kParanoidCpus = kParanoidChecks ? 4 : 1;

}  // namespace

uint32_t SizeClassLists::BatchFor(uint8_t c) const {
  const uint64_t batch = kSizeClasses[c].batch;
  if (batch_ == 0) return static_cast<uint32_t>(batch);
  // The central list gives the objects of one cache line at a time.
  return static_cast<uint32_t>(std::min(batch, std::max(batch_, uint64_t{Central::kLineObjects})));
}

ListsOfClass& SizeClassLists::Make(uint8_t c) {
  SpinLockHolder holder(lock_);
  // Another thread may have made them first.
  if (ListsOfClass* lists = lists_[c].load(std::memory_order_relaxed)) return *lists;
  auto* lists = new (memory_.bytes + made_ * sizeof(ListsOfClass)) ListsOfClass;
  ++made_;
  lists->central.Initialize(c, spans_, page_map_, codec_, arena_, std::max(cpus_, kParanoidCpus));
  const uint32_t batch = BatchFor(c);
  const size_t chains = kMaxTransferBytes / (size_t{batch} * kSizeClasses[c].size);
  lists->transfer.Initialize(lists->central, arrays_, codec_, batch,
                             static_cast<uint32_t>(std::max(chains, size_t{1})));
  // Release pairs with the acquire in FindLists.
  lists_[c].store(lists, std::memory_order_release);
  return *lists;
}

}  // namespace tcmalloc
