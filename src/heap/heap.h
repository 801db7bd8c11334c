// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The composition root: the one global, which holds every component and wires them together.

#ifndef TCMALLOC_HEAP_HEAP_H_
#define TCMALLOC_HEAP_HEAP_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/check.h"
#include "base/spin_lock.h"
#include "cache/per_cpu/cpu_cache.h"
#include "cache/per_thread/cache_budget.h"
#include "cache/per_thread/thread_cache.h"
#include "cache/per_thread/thread_caches.h"
#include "cache/sample_countdown.h"
#include "heap/errands.h"
#include "heap/guarded_range.h"
#include "heap/size_class_lists.h"
#include "options/options.h"
#include "page_heap/system_page_heap.h"
#include "pages/free_link.h"
#include "pages/metadata_arena.h"
#include "pages/page_map.h"
#include "size_class/size_classes.h"
#include "system/address_window.h"
#include "system/biased_lock.h"
#include "system/memory.h"
#include "thread/current_thread.h"
#include "thread/deferred_frees.h"
#include "thread/emergency_arena.h"
#include "thread/threads.h"
#include "transfer/chain_stack.h"
#include "upkeep/background_thread.h"
#include "upkeep/growth_steps.h"
#include "upkeep/housekeeping.h"
#include "upkeep/large_reports.h"
#include "upkeep/large_totals.h"
#include "upkeep/last_resort.h"
#include "upkeep/limits.h"
#include "upkeep/peak.h"

namespace tcmalloc {

using Cache = ThreadCache<SizeClassLists>;
using Caches = ThreadCaches<SizeClassLists>;
using Cpus = CpuCache<SizeClassLists>;

// Instantiated in heap.cc alone: one copy of each function, compiled for speed, whoever calls it.
extern template class ThreadCache<SizeClassLists>;
extern template class ThreadCaches<SizeClassLists>;
extern template class CpuCache<SizeClassLists>;
extern template class Threads<SizeClassLists>;

extern constinit EmergencyMemory emergency_memory;
extern constinit SizeClassMemory size_class_memory;
extern constinit Cgroup process_cgroup;

// constinit and trivially destructible: usable before the first constructor and after the last
// destructor. The components are thread safe, each by its own lock; base/lock_rank.h gives the
// order.
class Heap final : private HousekeepingHost {
 public:
  // The functions through which libc and the heap's parts reach this heap.
  constexpr Heap(const ThreadEvents& thread_events, const BackgroundWork& background_work)
      : threads_(arena_, context_, caches_, cpus_, deferred_, thread_events),
        background_(background_work) {}
  Heap(const Heap&) = delete;
  Heap& operator=(const Heap&) = delete;

  // Makes the heap usable; only the first call does anything. Allocates nothing.
  void EnsureInitialized() TCMALLOC_EXCLUDES(initialization_lock_) {
    // Acquire pairs with the release in Initialize.
    if (TCMALLOC_UNLIKELY(!initialized_.load(std::memory_order_acquire))) Initialize();
  }
  // Acquire pairs with the release in Initialize.
  bool initialized() const { return initialized_.load(std::memory_order_acquire); }

  const Options& options() const { return options_; }
  const LinkCodec& codec() const { return codec_; }
  SystemMemory& memory() { return memory_; }
  constexpr MetadataArena& arena() { return arena_; }
  // Returns the bytes of the allocator's own records, wherever they are: at least those that are
  // resident.
  size_t CountMetadata();
  constexpr PageMap& page_map() { return page_map_; }
  PageHeap& page_heap() const { return page_heaps_.chosen(); }
  constexpr PageHeaps& page_heaps() { return page_heaps_; }
  SizeClassLists& lists() { return lists_; }
  // Returns the lists of a class. Makes them if they do not exist yet.
  Transfer& transfer(uint8_t c) { return lists_.Ensure(c); }
  Central& central(uint8_t c) {
    lists_.Ensure(c);
    return lists_.central(c);
  }
  CacheBudget& budget() { return budget_; }
  Caches& caches() { return caches_; }
  Cpus& cpus() { return cpus_; }
  Threads<SizeClassLists>& threads() { return threads_; }
  FrontEndChoice& front_end() { return threads_.front_end(); }
  // Determined when caches of CPUs were first wanted.
  const RseqSupport& rseq_support() const { return rseq_support_; }
  const Cache::Context& context() const { return context_; }
  Limits& limits() { return limits_; }
  const GrowthSteps& growth_steps() const { return growth_steps_; }
  Peak& peak() { return peak_; }
  LargeReports& large_reports() { return large_reports_; }
  LargeTotals& large_totals() { return large_totals_; }
  // The mean bytes between two samples; may be set at any time.
  SamplePeriod& sample_period() { return sample_period_; }
  void SeedShared(uint64_t seed) {
    shared_samples_.Seed(seed);
    growth_samples_.Seed(~seed);
  }
  // Counts an allocation that no thread's clock counts.
  SampleDraw CountShared(size_t size) { return shared_samples_.Pass(size, sample_period_); }
  // Counts bytes by which a block grew in place. They have the same probability if the block is a
  // sample already, so that it may not depend on how fast samples come.
  SampleDraw CountGrowth(size_t bytes) { return growth_samples_.Pass(bytes, sample_period_); }
  EmergencyArena& emergency() { return emergency_; }
  // The addresses of blocks that the observer's functions have, and no page map.
  GuardedRange& guarded() { return guarded_; }
  DeferredFrees& deferred() { return deferred_; }
  ForkGate& gate() { return threads_.gate(); }
  Housekeeping& housekeeping() { return housekeeping_; }
  BackgroundThread& background() { return background_; }
  Errands& errands() { return errands_; }

  // Settings that a program changes at run time; each replaces the option of its name. Values
  // outside an option's range become the nearest one inside.
  void SetReleaseRate(double rate) TCMALLOC_EXCLUDES(limits_.lock());
  void SetMaxTotalThreadCacheBytes(uint64_t bytes) TCMALLOC_EXCLUDES(limits_.lock());
  // Sets what each thread's cache may hold at least; the total can be set as low as that.
  void SetMinPerThreadCacheBytes(uint64_t bytes) TCMALLOC_EXCLUDES(limits_.lock());
  void SetMaxPerCpuCacheSize(uint64_t bytes) TCMALLOC_EXCLUDES(limits_.lock());
  // Set limits in bytes; 0 removes the limit.
  void SetHardLimit(uint64_t bytes) TCMALLOC_EXCLUDES(limits_.lock());
  void SetSoftLimit(uint64_t bytes) TCMALLOC_EXCLUDES(limits_.lock());

  // Return the values that were set by these functions or by an option. Limits and control groups
  // may allow less.
  uint64_t max_total_thread_cache_bytes() TCMALLOC_EXCLUDES(limits_.lock());
  uint64_t max_per_cpu_cache_size() TCMALLOC_EXCLUDES(limits_.lock());
  uint64_t hard_limit();
  uint64_t soft_limit() TCMALLOC_EXCLUDES(limits_.lock());

  // Makes the caches of CPUs. Returns false if they are not available here. Called once.
  bool StartPerCpu();

  // Leaves every thread to the slow paths; LeaveSlowPath continues to do so while blocks are
  // watched. Called by a thread in the slow path after it added a hook; see
  // docs/subsystems/hooks.md.
  void CloseThreads() {
    // Pairs with OpenThread: a thread that does not see the hook has opened before it is closed
    // here.
    FenceThreads();
    caches_.CloseAll();
    cpus_.CloseAll();
  }

  // Returns true if the heap grew since the last call of TakeGrowth.
  bool HasGrown() const {
    return page_heap().total() != Length(noted_total_.load(std::memory_order_relaxed));
  }
  // Returns the bytes by which the heap grew since the last call.
  size_t TakeGrowth() {
    const Length now = page_heap().total();
    const Length before(noted_total_.exchange(now.pages(), std::memory_order_relaxed));
    return now > before ? (now - before).bytes() : 0;
  }

  // Lets `own`, the closed cache of the running thread, or the caches of CPUs if it is null, return
  // what they did not need since the last step of growth; called when growth_steps().IsDue() is
  // true.
  TCMALLOC_NOINLINE void MakeWay(Cache* own) {
    const Length committed = page_heap().committed();
    if (!growth_steps_.Take(committed)) return;
    own != nullptr ? own->MakeWay() : cpus_.MakeWay(committed.bytes());
  }
  // Records the memory that the heap holds now; called when peak().IsDue() is true.
  TCMALLOC_NOINLINE void UpdatePeak() TCMALLOC_EXCLUDES(peak_.lock());

  // Empties caches in this order: `own`, the closed cache of the running thread, which may be null;
  // the reachable part of other threads' caches, and the caches of CPUs; the transfer caches. Then
  // gives at least `least` of the free memory back to the system.
  TCMALLOC_COLD ShedBytes Shed(Cache* own, Length least,
                               ReleaseCause cause = ReleaseCause::kProgram);

  // Empties caches for a request that failed, if that may help: for n adjacent pages or, if n is 0,
  // for an object. `own` is as for Shed. Returns true if the request is worth another attempt.
  TCMALLOC_COLD bool ShedFor(Cache* own, Length n);

  // Follows the limits of cgroups, and sheds memory if the heap holds more than its soft limit or
  // is under pressure. Does nothing while another thread does it. `own` is as for Shed.
  TCMALLOC_NOINLINE void FollowLimits(Cache* own,
                                      Limits::Reader reader = Limits::Reader::kAllocating)
      TCMALLOC_EXCLUDES(limits_.lock());

 private:
  TCMALLOC_NOINLINE void Initialize() TCMALLOC_EXCLUDES(initialization_lock_);

  // The functions of HousekeepingHost.
  PageHeap& Pages() override { return page_heap(); }
  size_t CountThreadCaches() override;
  void ReturnIdleOfThreads(size_t count, ThreadHeader* own) override;
  bool MayBeOverdrawn() override;
  TCMALLOC_COLD bool ReturnOverdrafts(uint64_t now, ThreadHeader* own) override;
  void ReturnIdleOfCpus() override;
  void ReturnUnused(SourceTurns& turns, uint32_t count) override;
  size_t FullBytes(ThreadHeader* own) override;
  TCMALLOC_COLD void ReturnLargeObjects(ThreadHeader* own) override;
  TCMALLOC_COLD PeakStats CountInUse() override;
  TCMALLOC_COLD void ReturnSomeCached(ThreadHeader* own, size_t most) override;
  TCMALLOC_COLD void ReturnLists(ThreadHeader* own) override;
  bool RefreshLimits(int64_t now, Limits::Reader reader) override TCMALLOC_EXCLUDES(limits_.lock());
  bool FollowsCgroup() override;
  bool IsAwaited() override;

  TCMALLOC_COLD void ChooseWindow();
  // Called by SystemMemory, whose lock is held.
  static uintptr_t ExtendWindow(uintptr_t end);
  TCMALLOC_COLD void ConfigureFromOptions();
  void ConfigureLimits();
  // Pass options on to the components that use them.
  void ApplyReleaseRate();
  void RefreshAndApply(int64_t now, Limits::Reader reader) TCMALLOC_REQUIRES(limits_.lock());
  void ApplyCacheLimits() TCMALLOC_REQUIRES(limits_.lock());
  // Returns the bytes of thread caches that were set, or that the number of CPUs calls for.
  uint64_t WantedThreadCacheBytes() TCMALLOC_REQUIRES(limits_.lock());
  // Returns the bytes that the options and limits together allow caches to hold.
  size_t ThreadCacheBytes() TCMALLOC_REQUIRES(limits_.lock());
  uint64_t LimitOfHeap();
  uint64_t WantedBytesPerCpu(uint64_t cpus) TCMALLOC_REQUIRES(limits_.lock());
  size_t BytesPerCpu() TCMALLOC_REQUIRES(limits_.lock());
  static int LimitedCpus();
  // Adds up the contents of all caches. Visits each of them.
  TCMALLOC_COLD CachedMemory CountCached();

  SpinLock initialization_lock_{LockRank::kInitialization};
  std::atomic<bool> initialized_{false};

  SystemMemory memory_;
  AddressWindow window_;  // memory_'s lock guards it once the heap is initialized
  MetadataArena arena_{AllocateMetadata};
  PageMap page_map_{arena_};
  PageHeaps page_heaps_{memory_, page_map_, arena_};
  LinkCodec codec_;
  ChainArrays arrays_{arena_, &size_class_memory.spare_arrays};
  SizeClassLists lists_{size_class_memory, page_heaps_, page_map_, codec_, arrays_, arena_};
  CacheBudget budget_;
  Cache::Context context_;
  Caches caches_{arena_};
  Cpus cpus_{arena_};
  RseqSupport rseq_support_;
  Limits limits_{process_cgroup};
  LastResort last_resort_;
  GrowthSteps growth_steps_;
  Peak peak_;
  LargeReports large_reports_;
  LargeTotals large_totals_;
  std::atomic<uintptr_t> noted_total_{0};
  SamplePeriod sample_period_ = 0;
  SharedSampleCountdown shared_samples_;
  SharedSampleCountdown growth_samples_{SharedSampleCountdown::Pace::kFree};
  EmergencyArena emergency_{emergency_memory};
  GuardedRange guarded_;
  DeferredFrees deferred_;
  Threads<SizeClassLists> threads_;
  Housekeeping housekeeping_{*this};
  BackgroundThread background_;
  Errands errands_;
  // The options that the setters above change are guarded by limits_.lock() once the heap is
  // initialized.
  Options options_;
  uint64_t least_total_thread_cache_bytes_ TCMALLOC_GUARDED_BY(limits_.lock()) =
      kLeastTotalThreadCacheBytes;
};

extern constinit Heap heap;

// See Threads::Enter, EnterPatiently and Leave.
inline Entry EnterSlowPath() { return heap.threads().Enter(); }
inline Entry EnterSlowPathPatiently() { return heap.threads().EnterPatiently(); }
inline void LeaveSlowPath(Entry entry) { heap.threads().Leave(entry); }

// Makes the heap, if nothing was allocated yet, by entering the slow path. Keeps errno.
void MakeHeap();

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_HEAP_H_
