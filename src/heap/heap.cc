// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap/heap.h"

#include <sys/mman.h>

#include <algorithm>

#include "base/bits.h"
#include "base/message.h"
#include "heap/mode.h"
#include "heap/observer.h"
#include "options/load.h"
#include "system/auxv.h"
#include "system/clock.h"
#include "system/own_memory.h"
#include "system/own_operators.h"
#include "system/random.h"
#include "system/system_calls.h"
#include "system/topology.h"
#include "system/transparent_hugepages.h"

namespace tcmalloc {

template class CentralFreeList<Spans>;
template class CentralLists<Spans>;
template class TransferCache<Central>;
template class ThreadCache<SizeClassLists>;
template class ThreadCaches<SizeClassLists>;
template class CpuCache<SizeClassLists>;
template class Threads<SizeClassLists>;

namespace {

// A hard limit above this value limits nothing.
constexpr uint64_t kMostLimit = kMostMebibytes << 20;

// Bound the bytes of all caches together in a limited heap: at most this share, but at least this
// size.
constexpr uint64_t kCacheShare = 8;
constexpr uint64_t kLeastThreadCaches = uint64_t{512} << 10;
constexpr uint64_t kLeastPerCpu = uint64_t{64} << 10;

// The word to which LinkCodec::end refers if no memory for it can be had in the window.
constinit const uint64_t zero_word = 0;

// Maps a word of zero inside the window, so that LinkCodec::end passes the fast path's check.
const void* MakeEndWord(uintptr_t hint, size_t page_bytes) {
  void* page = system_calls.mmap(reinterpret_cast<void*>(hint), page_bytes, PROT_READ,
                                 MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return page == MAP_FAILED ? &zero_word : page;
}

// Returns the half-life of unused memory in nanoseconds, scaled by the rate; at most a
// century and a half.
uint64_t HalfLife(const Options& options) {
  if (options.release_rate == 0 || options.disable_memory_release) return 0;
  const double ns = static_cast<double>(options.release_half_life) * 1e6 / options.release_rate;
  return static_cast<uint64_t>(static_cast<int64_t>(std::min(ns, 0x1p62)));
}

FileMemory::Config MemfsConfig(const Options& options) {
  return {.path = options.memfs_malloc_path.text,
          .limit = options.memfs_limit_mb << 20,
          .map_private = options.memfs_map_private,
          .ignore_map_failures = options.memfs_ignore_mmap_fail};
}

FileMemory::Config DeviceConfig(const Options& options) {
  if (options.devmem_start == 0) return {};
  return {.path = options.devmem_device.empty() ? "/dev/mem" : options.devmem_device.text,
          .device = true,
          .start = options.devmem_start << 20,
          .limit = options.devmem_limit << 20,
          .ignore_map_failures = true};
}

size_t CachedBytes(const Cpus& cpus) {
  size_t bytes = 0;
  for (size_t i = 1; i < kSizeClassCount; ++i) {
    const auto c = static_cast<uint8_t>(i);
    bytes += cpus.CountObjects(c) * kSizeClasses[c].size;
  }
  return bytes;
}

// Returns to the spans the objects of class `first` and all larger ones in the transfer caches and,
// if its full chains have no more than `most` bytes, in the cache of `thread`, which may be null.
TCMALLOC_COLD void FlushClasses(uint8_t first, ThreadHeader* thread, size_t most,
                                SizeClassLists& lists) {
  Cache* own = thread != nullptr ? Cache::Of(thread) : nullptr;
  if (own != nullptr && own->full_bytes() <= most) own->FlushFrom(first);
  lists.ForEach([first](uint8_t c, Transfer& transfer, Central&) {
    if (c >= first) transfer.Drain();
  });
}

}  // namespace

constinit EmergencyMemory emergency_memory{};
constinit SizeClassMemory size_class_memory{};
constinit Cgroup process_cgroup{};

void Heap::ChooseWindow() {
  const uint64_t random = RandomSeed(0);
  // The leak checker takes any word for a pointer, so that the fewer pairs of 32-bit numbers look
  // like addresses of the heap, the fewer leaks it misses.
  const bool is_searched = options_.heap_check != HeapCheckOption::kOff;
  const size_t table_bytes = is_searched ? kLargestWindow >> kPageShift : kFirstTableBytes;
  window_ = ReserveAddressWindow(kPageShift, table_bytes, random);
  page_map_.SetWindow(window_.table, window_.limit);
  const size_t page_bytes = KernelPageSize();
  codec_.Initialize(RandomSeed(1), window_.limit, MakeEndWord(window_.hint_start, page_bytes));
  memory_.Configure({.skip_mmap = options_.skip_mmap,
                     .skip_sbrk = options_.skip_sbrk,
                     .disable_release = options_.disable_memory_release,
                     .abort_without_memfs = options_.memfs_abort_on_fail,
                     .memfs_only = options_.memfs_disable_fallback,
                     .memfs = MemfsConfig(options_),
                     .device = DeviceConfig(options_),
                     .window_limit = window_.limit,
                     .extend_window = ExtendWindow,
                     .hint_start = window_.hint_start + std::max(page_bytes, kPageSize)});
}

uintptr_t Heap::ExtendWindow(uintptr_t end) {
  if (!ExtendAddressWindow(&heap.window_, end)) return 0;
  heap.page_map_.ExtendWindow(heap.window_.limit);
  heap.codec_.SetWindowLimit(heap.window_.limit);
  return heap.window_.limit;
}

void Heap::ConfigureFromOptions() {
  const bool by_default = options_.page_heap == PageHeapOption::kAuto;
  if (options_.page_heap == PageHeapOption::kHuge || (by_default && CopiesProcess(options_))) {
    page_heaps_.Choose(PageHeapKind::kHuge);
    page_heap().set_hugepages(ReadTransparentHugepages());
  }
  ApplyReleaseRate();
  lists_.set_batch(options_.transfer_num_obj);
  lists_.set_cpus(static_cast<uint32_t>(UsableCpus()));
  page_heap().set_aggressive_decommit(options_.aggressive_decommit);
  threads_.front_end().Configure(options_.front_end, LimitedCpus);
  if (!options_.crash_report.empty()) {
    crash_report_prefix.store(options_.crash_report.text, std::memory_order_relaxed);
  }
  large_reports_.set_threshold(options_.large_alloc_report_threshold);
  ConfigureLimits();
  {
    SpinLockHolder holder(limits_.lock());
    budget_.SetTotal(ThreadCacheBytes());
  }
  sample_period_ = InitialSamplePeriod(options_);
}

void Heap::ApplyReleaseRate() {
  page_heap().set_release_rate(options_.release_rate);
  housekeeping_.set_half_life(HalfLife(options_));
}

void Heap::ConfigureLimits() {
  page_heap().set_limit(Length::FromBytesCeil(options_.heap_limit_mb << 20));
  limits_.Configure({.soft_limit = options_.soft_limit_mb << 20,
                     .follow_cgroup = options_.cgroup == CgroupOption::kAuto,
                     .cgroup_root = options_.cgroup_root.text});
}

ShedBytes Heap::Shed(Cache* own, Length least, ReleaseCause cause) {
  ShedBytes shed;
  const auto cached = [&] { return CachedBytes(cpus_) + caches_.stats().cached_bytes; };
  const size_t before = cached();
  if (own != nullptr) own->Flush();
  caches_.ReleaseFull();
  cpus_.Flush();
  shed.caches = before - std::min(before, cached());
  lists_.ForEach([&shed](uint8_t c, Transfer& transfer, Central&) {
    const size_t objects = transfer.stats().objects;
    if (objects == 0) return;
    shed.transfer += objects * kSizeClasses[c].size;
    transfer.Drain();
  });
  shed.page_heap = page_heap().ReleaseAtLeast(least, cause).bytes();
  return shed;
}

CachedMemory Heap::CountCached() {
  uint32_t objects[kSizeClassCount] = {};
  caches_.ForEach([&objects](const Cache& cache) {
    cache.ForEachCount([&objects](uint8_t c, size_t n) { objects[c] += static_cast<uint32_t>(n); });
  });
  CachedMemory cached;
  lists_.ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
    const uint64_t n = objects[c] + cpus_.CountObjects(c) + transfer.stats().objects;
    if (n == 0) return;
    const CentralStats stats = central.stats();
    cached.objects += n;
    cached.pages +=
        Length(std::min<uint64_t>(n * kSizeClasses[c].pages, stats.span_bytes >> kPageShift));
  });
  return cached;
}

// Exact while no other thread is in the allocator.
PeakStats Heap::CountInUse() {
  uint64_t cached = 0;
  caches_.ForEach([&cached](const Cache& cache) { cached += cache.CountBytes(); });
  uint64_t given_out = 0;
  uint64_t in_spans = 0;
  uint64_t untouched = 0;
  lists_.ForEach([&](uint8_t c, Transfer& transfer, Central& central) {
    const uint64_t size = kSizeClasses[c].size;
    cached += (cpus_.CountObjects(c) + transfer.stats().objects) * size;
    const CentralStats stats = central.stats();
    given_out += stats.allocated_objects * size;
    in_spans += stats.span_bytes;
    untouched += stats.untouched_objects * size;
  });
  const PageHeapStats pages = page_heap().stats();
  const uint64_t in_use = pages.in_use().bytes() + given_out;
  const uint64_t committed = pages.committed().bytes();
  return {.committed = pages.committed(),
          .in_use = in_use - std::min(in_use, in_spans + cached),
          .physical = committed - std::min(committed, untouched) + CountMetadata()};
}

// The address window has a byte for each page.
size_t Heap::CountMetadata() {
  const size_t window = memory_.stats().peak_bytes >> kPageShift;
  return arena_.stats().used_bytes + own_bytes.get() + AlignUp(window, KernelPageSize());
}

void Heap::UpdatePeak() {
  peak_.Update([this] { return CountInUse(); });
}

bool Heap::ShedFor(Cache* own, Length n) {
  const LastResort::Request request{
      .pages = n, .limit = page_heap().limit(), .heap = page_heap().stats()};
  if (!LastResort::IsPossible(request, request.heap.in_use())) return false;
  const int64_t begin = MonotonicNanoseconds();
  if (!last_resort_.MayHelp(request, CountCached(), begin)) return false;
  limits_.NoteShed(Shed(own, Length(0), ReleaseCause::kHardLimit));
  last_resort_.NoteShed(CountCached(), begin, MonotonicNanoseconds());
  return true;
}

size_t Heap::CountThreadCaches() { return caches_.listed_count(); }

void Heap::ReturnIdleOfThreads(size_t count, ThreadHeader* own) {
  caches_.ReleaseIdle(count, own != nullptr ? Cache::Of(own) : nullptr);
}

bool Heap::MayBeOverdrawn() { return budget_.HasManyCuts(); }

bool Heap::ReturnOverdrafts(uint64_t now, ThreadHeader* own) {
  constexpr size_t kMostCaches = 1024;
  // Returning this much takes a fifth of a millisecond.
  constexpr int64_t kMostBytes = int64_t{1} << 20;
  OverdraftLook look{.now = now, .most = kMostBytes};
  caches_.ReturnOverdrafts(kMostCaches, own != nullptr ? Cache::Of(own) : nullptr, &look);
  if (!look.is_any_overdrawn) budget_.ForgetCuts();
  return look.most > 0;
}

void Heap::ReturnIdleOfCpus() { cpus_.ReleaseIdle(page_heap().committed().bytes()); }

void Heap::ReturnUnused(SourceTurns& turns, uint32_t count) { turns.ReturnUnused(lists_, count); }

size_t Heap::FullBytes(ThreadHeader* own) { return Cache::Of(own)->full_bytes(); }

bool Heap::RefreshLimits(int64_t now, Limits::Reader reader) {
  if (!limits_.RefreshIsDue(now, page_heap().committed(), reader)) return false;
  FollowLimits(nullptr, reader);
  return true;
}

bool Heap::FollowsCgroup() { return limits_.follows_cgroup(); }

bool Heap::IsAwaited() { return gate().closed(); }

// Does so only if there are so few objects that nobody waits long.
void Heap::ReturnLargeObjects(ThreadHeader* thread) {
  constexpr uint8_t kFirst = SizeClassFor(kPageSize);
  // Returning this much takes half a millisecond. It is the default bound for the caches of all
  // threads.
  constexpr size_t kMostBytes = size_t{32} << 20;
  FlushClasses(kFirst, thread, kMostBytes, lists_);
}

void Heap::ReturnSomeCached(ThreadHeader* own, size_t most) {
  own != nullptr ? Cache::Of(own)->ReturnSome(static_cast<int64_t>(most))
                 : cpus_.MakeWay(page_heap().committed().bytes());
}

void Heap::ReturnLists(ThreadHeader* own) { FlushClasses(1, own, 0, lists_); }

uint64_t Heap::WantedThreadCacheBytes() {
  const uint64_t wanted = options_.max_total_thread_cache_bytes;
  if (wanted != kDefaultTotalThreadCacheBytes) return wanted;
  const auto cpus = static_cast<uint64_t>(UsableCpus(limits_.cgroup()));
  return std::clamp(cpus * kThreadCacheBytesPerCpu, wanted, kMostTotalThreadCacheBytes);
}

size_t Heap::ThreadCacheBytes() {
  const uint64_t wanted = WantedThreadCacheBytes();
  return std::min(wanted, std::max(LimitOfHeap() / kCacheShare, kLeastThreadCaches));
}

// Few CPUs may cache as much as threads do by default.
uint64_t Heap::WantedBytesPerCpu(uint64_t cpus) {
  const uint64_t wanted = options_.max_per_cpu_cache_size;
  if (wanted != kDefaultPerCpuCacheSize) return wanted;
  return std::max(wanted, kDefaultTotalThreadCacheBytes / cpus);
}

// There may be as many caches as CPUs on which the process may run at once, even if the quota pays
// for fewer. They then share the bytes for the smaller number.
size_t Heap::BytesPerCpu() {
  const auto cpus = static_cast<uint64_t>(UsableCpus());
  const auto paid = static_cast<uint64_t>(UsableCpus(limits_.cgroup()));
  const uint64_t wanted = WantedBytesPerCpu(paid) / cpus * paid;
  const uint64_t most = LimitOfHeap() / kCacheShare / cpus;
  return std::max(std::min(wanted, most), std::min(options_.max_per_cpu_cache_size, kLeastPerCpu));
}

// Returns the lower one of the two limits.
uint64_t Heap::LimitOfHeap() {
  const uint64_t hard = hard_limit();
  const uint64_t soft = limits_.soft_limit().bytes();
  return hard == 0 ? soft : std::min(hard, soft);
}

int Heap::LimitedCpus() {
  SpinLockHolder holder(heap.limits_.lock());
  heap.RefreshAndApply(MonotonicNanoseconds(), Limits::Reader::kRegular);
  return UsableCpus(heap.limits_.cgroup());
}

void Heap::RefreshAndApply(int64_t now, Limits::Reader reader) {
  if (!limits_.Refresh(now, page_heap().committed(), reader)) return;
  threads_.front_end().SetUsableCpus(UsableCpus(limits_.cgroup()));
  ApplyCacheLimits();
}

void Heap::ApplyCacheLimits() {
  budget_.SetTotal(ThreadCacheBytes());
  cpus_.SetBytesPerCpu(BytesPerCpu());
}

void Heap::SetReleaseRate(double rate) {
  SpinLockHolder holder(limits_.lock());
  options_.release_rate = rate > 0 ? std::min(rate, kMostReleaseRate) : 0;
  ApplyReleaseRate();
}

void Heap::SetMaxTotalThreadCacheBytes(uint64_t bytes) {
  SpinLockHolder holder(limits_.lock());
  options_.max_total_thread_cache_bytes =
      std::clamp(bytes, least_total_thread_cache_bytes_, kMostTotalThreadCacheBytes);
  const size_t total = budget_.total();
  ApplyCacheLimits();
  // Idle threads do not notice that their shares became smaller.
  if (budget_.total() < total) caches_.ReleaseFull();
}

void Heap::SetMinPerThreadCacheBytes(uint64_t bytes) {
  SpinLockHolder holder(limits_.lock());
  budget_.SetFirstShare(bytes);
  least_total_thread_cache_bytes_ = budget_.first_share();
}

void Heap::SetMaxPerCpuCacheSize(uint64_t bytes) {
  SpinLockHolder holder(limits_.lock());
  options_.max_per_cpu_cache_size = std::clamp(bytes, kLeastPerCpuCacheSize, kMostPerCpuCacheSize);
  ApplyCacheLimits();
}

void Heap::SetHardLimit(uint64_t bytes) {
  SpinLockHolder holder(limits_.lock());
  page_heap().set_limit(bytes > kMostLimit ? Length(0) : Length::FromBytesCeil(bytes));
  ApplyCacheLimits();
}

void Heap::SetSoftLimit(uint64_t bytes) {
  SpinLockHolder holder(limits_.lock());
  limits_.SetWantedSoftLimit(bytes == 0 ? UINT64_MAX : bytes, page_heap().committed());
  ApplyCacheLimits();
}

uint64_t Heap::max_total_thread_cache_bytes() {
  SpinLockHolder holder(limits_.lock());
  return WantedThreadCacheBytes();
}

uint64_t Heap::max_per_cpu_cache_size() {
  SpinLockHolder holder(limits_.lock());
  return options_.max_per_cpu_cache_size;
}

uint64_t Heap::hard_limit() { return page_heap().limit().bytes(); }

uint64_t Heap::soft_limit() {
  SpinLockHolder holder(limits_.lock());
  const uint64_t wanted = limits_.wanted();
  return wanted == UINT64_MAX ? 0 : wanted;
}

void Heap::FollowLimits(Cache* own, Limits::Reader reader) {
  if (!limits_.lock().TryLock()) return;
  const int64_t now = MonotonicNanoseconds();
  RefreshAndApply(now, reader);
  const Length least = limits_.ToShed(now, page_heap().committed());
  if (least > Length(0)) {
    const ShedBytes shed = Shed(own, least, ReleaseCause::kSoftLimit);
    limits_.NoteSoftShed(shed, now, MonotonicNanoseconds(), page_heap().committed());
  }
  limits_.ScheduleNextCheck(page_heap().committed(), page_heap().spans_served());
  limits_.lock().Unlock();
}

bool Heap::StartPerCpu() {
  const bool by_number = options_.cpu_ids == CpuIdsOption::kCpuId;
  rseq_support_ = DetectRseq(by_number ? CpuIds::kCpuId : CpuIds::kMmCid);
  size_t bytes_per_cpu = 0;
  {
    SpinLockHolder holder(limits_.lock());
    RefreshAndApply(MonotonicNanoseconds(), Limits::Reader::kRegular);
    bytes_per_cpu = BytesPerCpu();
  }
  if (rseq_support_.state != RseqState::kUsable) return false;
  const Cpus::Context context{.sources = &lists_,
                              .codec = &codec_,
                              .page_map = &page_map_,
                              .arrays = &arrays_,
                              .classes = page_map_.classes_by_reference(),
                              .slow = SlowPathsOfEntryPoints(),
                              .sample_period = &sample_period_};
  return cpus_.Initialize(context, rseq_support_, FenceRseq, bytes_per_cpu);
}

namespace {

void WarnOfMode(const char* mode, const char* reason) {
  Warn(Message() << "TCMALLOC_MODE=" << mode << ": " << reason << "; running in the default mode");
}

void StartMode(const Options& options) {
  constexpr char kMissing[] = "this library has no such mode";
  const Modes modes = ModesOfLibrary();
  if (modes.always_debug || options.mode == ModeOption::kDebug) {
    if (modes.start_debug == nullptr) return WarnOfMode("debug", kMissing);
    modes.start_debug();
  } else if (options.mode == ModeOption::kHardened) {
    if (modes.start_hardened == nullptr) return WarnOfMode("hardened", kMissing);
    if (!modes.start_hardened(options)) WarnOfMode("hardened", "no memory for it");
  }
}

}  // namespace

void Heap::Initialize() {
  SpinLockHolder holder(initialization_lock_);
  if (initialized_.load(std::memory_order_relaxed)) return;
  Environment environment;
  LoadOptions(environment, &options_);
  ChooseWindow();
  ConfigureFromOptions();
  context_ = {.sources = &lists_,
              .codec = &codec_,
              .page_map = &page_map_,
              .arrays = &arrays_,
              .budget = &budget_,
              .slow = SlowPathsOfEntryPoints(),
              .sample_period = &sample_period_};
  threads_.WatchThreadEnds();
  if (!OperatorsAreOurs()) LeadToProgramsOperators();
  StartMode(options_);
  // Release pairs with the acquire in EnsureInitialized and Heap::initialized and publishes all of
  // the above.
  initialized_.store(true, std::memory_order_release);
}

}  // namespace tcmalloc
