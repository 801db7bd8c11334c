// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/heap.h"

#include <sys/mman.h>

#include <algorithm>

#include "heap/current_thread.h"
#include "options/load.h"
#include "system/address_window.h"
#include "system/auxv.h"
#include "system/random.h"
#include "system/system_calls.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {
namespace {

// The most bytes of one size class that wait in its transfer cache.
constexpr size_t kMaxTransferBytes = size_t{1} << 20;

// What LinkCodec::end refers to where no memory in the window can be had for it.
constinit const uint64_t zero_word = 0;

// A word of zero inside the window, for there LinkCodec::end takes the fast path.
const void* MakeEndWord(uintptr_t hint, size_t page_bytes) {
  void* page = system_calls.mmap(reinterpret_cast<void*>(hint), page_bytes, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? &zero_word : page;
}

uint32_t BatchFor(uint8_t c, uint64_t transfer_num_obj) {
  const uint64_t batch = kSizeClasses[c].batch;
  if (transfer_num_obj == 0) return static_cast<uint32_t>(batch);
  // The central list gives the objects of a cache line at a time.
  return static_cast<uint32_t>(
      std::min(batch, std::max(transfer_num_obj, uint64_t{Central::kLineObjects})));
}

}  // namespace

constinit Heap heap;

void Heap::ChooseWindow() {
  const uint64_t random = RandomSeed(0);
  const AddressWindow window = ReserveAddressWindow(kPageShift, random);
  page_map_.SetWindow(window.table, window.limit);
  const size_t page_bytes = KernelPageSize();
  codec_.Initialize(RandomSeed(1), window.limit, MakeEndWord(window.hint_start, page_bytes));
  memory_.Configure({.skip_mmap = options_.skip_mmap,
                     .skip_sbrk = options_.skip_sbrk,
                     .disable_release = options_.disable_memory_release,
                     .window_limit = window.limit,
                     .hint_start = window.hint_start + std::max(page_bytes, kPageSize)});
}

void Heap::ConfigureFromOptions() {
  if (options_.page_heap == PageHeapOption::kHuge) {
    page_heap_.Choose(PageHeapKind::kHuge);
    page_heap_.set_hugepages(ReadTransparentHugepages());
  }
  page_heap_.set_release_rate(options_.release_rate);
  page_heap_.set_limit(Length::FromBytesCeil(options_.heap_limit_mb << 20));
  page_heap_.set_aggressive_decommit(options_.aggressive_decommit);
  front_end_.Configure(options_.front_end);
  budget_.SetTotal(options_.max_total_thread_cache_bytes);
}

void Heap::InitializeSizeClasses() {
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    centrals_[c].Initialize(c, page_heap_, page_map_, codec_);
    const uint32_t batch = BatchFor(c, options_.transfer_num_obj);
    const size_t chains = kMaxTransferBytes / (size_t{batch} * kSizeClasses[c].size);
    transfers_[c].Initialize(centrals_[c], arrays_, batch,
                             static_cast<uint32_t>(std::max(chains, size_t{1})));
  }
}

void Heap::DrainSharedCaches() {
  cpus_.Flush();
  for (size_t c = 1; c < kSizeClassCount; ++c) transfers_[c].Drain();
}

bool Heap::StartPerCpu() {
  rseq_support_ = DetectRseq();
  // The lock keeps a fork from taking the locks of some slabs and not of others.
  SpinLockHolder holder(initialization_lock_);
  if (rseq_support_.state != RseqState::kUsable) return false;
  const Cpus::Context context{
      .sources = transfers_, .codec = &codec_, .classes = page_map_.classes_by_reference()};
  return cpus_.Initialize(context, rseq_support_, FenceRseq, options_.max_per_cpu_cache_size);
}

void Heap::Initialize() {
  SpinLockHolder holder(initialization_lock_);
  if (initialized_.load(std::memory_order_relaxed)) return;
  Environment environment;
  LoadOptions(environment, &options_);
  ChooseWindow();
  ConfigureFromOptions();
  InitializeSizeClasses();
  context_ = {.sources = transfers_,
              .codec = &codec_,
              .page_map = &page_map_,
              .arrays = &arrays_,
              .budget = &budget_};
  WatchThreadEnds();
  // Release pairs with the acquire in EnsureInitialized and publishes all of the above.
  initialized_.store(true, std::memory_order_release);
}

}  // namespace tcmalloc
