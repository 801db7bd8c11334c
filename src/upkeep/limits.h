// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Decides how much memory the heap should hold, and when to give some back.

#ifndef TCMALLOC_UPKEEP_LIMITS_H_
#define TCMALLOC_UPKEEP_LIMITS_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/spin_lock.h"
#include "base/thread_annotations.h"
#include "pages/page_types.h"
#include "system/cgroup.h"

namespace tcmalloc {

// The bytes that each stage of a shed freed. Memory from caches and transfer caches goes to the
// page heap, and only the page heap gives memory back to the system.
struct ShedBytes {
  uint64_t caches = 0;
  uint64_t transfer = 0;
  uint64_t page_heap = 0;
};

struct LimitStats {
  uint64_t soft_limit = 0;     // bytes; 0: none
  uint64_t soft_hits = 0;      // times that memory was shed because of it
  uint64_t soft_shrinks = 0;   // of these, times that it was kept then
  uint64_t pressure_hits = 0;  // sheds because other processes wait for memory
  uint64_t shed_caches = 0;    // bytes that these stages shed for any limit, ever
  uint64_t shed_transfer = 0;
  CgroupLimits cgroup;
};

// Makes the decisions; Heap acts on them. The soft limit bounds PageHeapStats::committed, which
// includes the contents of caches. It is the lower one of the limit that the option or the program
// sets and the limit that the cgroup leaves:
//
//     min(memory.high, 9/10 of memory.max) - what the process has resident outside the heap
//
// The second term is read together with the limits. At most 7/8 of the first count for it, because
// a heap that should be empty could not serve the program.
//
// A heap above its limit may be unable to shed anything. A shed therefore waits kCostShare times as
// long as the last one took, and twice as long each time the last one did not suffice.
//
// Limits of cgroups are read when the heap passes kFirstLook. Afterwards a background thread reads
// them every second. Allocating threads read them only if the heap has grown towards its limit, and
// otherwise seldom: files that malloc opens disturb programs that close all descriptors, and people
// who trace system calls. docs/decisions/0020-when-cgroups-are-read.md.
//
// Any thread may call IsDue and the statistics. The other methods require the lock, for which
// allocating threads never wait.
class Limits {
 public:
  // The reader of the limits: a thread in passing, or one that reads regularly or must know them.
  enum class Reader : uint8_t { kAllocating, kRegular };

  // The share of the last ten seconds, in hundredths of a percent, in which some task of the cgroup
  // waited for memory, from which on the heap gives up its unused memory.
  static constexpr uint32_t kHighPressure = 1000;

  static constexpr int64_t kMillisecond = 1'000'000;
  static constexpr int64_t kRefreshInterval = 1000 * kMillisecond;
  // The interval for allocating threads in a heap that does not grow.
  static constexpr int64_t kSeldom = 10 * kRefreshInterval;
  // The growth after which they read again: a share of the way to the limit or, if that is far, of
  // the heap, but at least this much.
  static constexpr Length kLeastGrowth = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr uintptr_t kGrowthShare = 8;
  static constexpr int64_t kLeastPause = 10 * kMillisecond;
  static constexpr int64_t kMostPause = 1000 * kMillisecond;
  static constexpr int64_t kCostShare = 64;

  // Smaller heaps do not read limits of cgroups, because most processes are short and small.
  static constexpr Length kFirstLook = Length::FromBytesCeil(size_t{8} << 20);

  struct Config {
    uint64_t soft_limit = 0;  // bytes; 0: none
    bool follow_cgroup = false;
    const char* cgroup_root = "";  // must outlive this
  };

  // Reads `cgroup`, which must outlive this and is its own from then on.
  explicit constexpr Limits(Cgroup& cgroup) : cgroup_(cgroup) {}
  Limits(const Limits&) = delete;
  Limits& operator=(const Limits&) = delete;

  // Call before anything else.
  void Configure(const Config& config);

  // Returns true if a thread that fetched memory should check the limits, because the heap has
  // grown, or has served many spans, since the last check. Two loads.
  bool IsDue(Length committed, uint64_t spans_served) const {
    return committed.pages() > watched_pages_.load(std::memory_order_relaxed) ||
           spans_served > watched_spans_.load(std::memory_order_relaxed);
  }
  // Returns true if Refresh would read anything. Clocks are monotonic, in nanoseconds.
  bool RefreshIsDue(int64_t now, Length committed, Reader reader) const {
    if (!follow_cgroup_ || now < next_refresh_.load(std::memory_order_relaxed)) return false;
    return reader == Reader::kRegular ||
           committed.pages() > refresh_pages_.load(std::memory_order_relaxed) ||
           now >= seldom_refresh_.load(std::memory_order_relaxed);
  }
  // Constant after Configure.
  bool follows_cgroup() const { return follow_cgroup_; }

  // Sets the soft limit that the program wants, instead of the option's; UINT64_MAX removes it. The
  // next thread that fetches memory checks it without a pause.
  TCMALLOC_COLD void SetWantedSoftLimit(uint64_t bytes, Length committed) TCMALLOC_REQUIRES(lock_);
  uint64_t wanted() const TCMALLOC_REQUIRES(lock_) { return wanted_; }

  // Reads the limits of the cgroup if that is due. Returns true if it was due. A limit that cannot
  // be read now, because the process has no descriptor left, keeps its value.
  bool Refresh(int64_t now, Length committed, Reader reader) TCMALLOC_REQUIRES(lock_);
  // Returns the pages that the heap should give back now: 0 if it is within its limit or has to
  // wait, and Length::Max() under pressure.
  Length ToShed(int64_t now, Length committed) TCMALLOC_REQUIRES(lock_);
  // Notes the shed that ToShed asked for, which began at `begin` and left `committed`.
  void NoteSoftShed(const ShedBytes& shed, int64_t begin, int64_t end, Length committed)
      TCMALLOC_REQUIRES(lock_);
  // Decides when IsDue returns true again.
  void ScheduleNextCheck(Length committed, uint64_t spans_served) TCMALLOC_REQUIRES(lock_);

  // Notes a shed for the hard limit. Needs no lock.
  void NoteShed(const ShedBytes& shed);

  // Length::Max() if there is none.
  Length soft_limit() const { return Length(soft_pages_.load(std::memory_order_relaxed)); }
  const CgroupLimits& cgroup() const TCMALLOC_REQUIRES(lock_) { return cgroup_limits_; }

  LimitStats stats() TCMALLOC_EXCLUDES(lock_);
  SpinLock& lock() TCMALLOC_RETURN_CAPABILITY(lock_) { return lock_; }

 private:
  static constexpr uint64_t kSpansBetweenLooks = 256;
  static constexpr Length kLeastStep = Length::FromBytesCeil(size_t{1} << 20);
  static constexpr uintptr_t kStepShare = 64;

  void SetSoftLimit(uint64_t bytes);
  uint64_t DerivedLimit(Length committed) TCMALLOC_REQUIRES(lock_);
  void PlanRefresh(int64_t now, Length committed) TCMALLOC_REQUIRES(lock_);

  SpinLock lock_{LockRank::kLimits};
  bool follow_cgroup_ = false;  // constant after Configure

  std::atomic<uintptr_t> watched_pages_{UINTPTR_MAX};
  std::atomic<uint64_t> watched_spans_{UINT64_MAX};
  // The times when limits may be read again, and the time and size at which an allocating thread
  // does.
  std::atomic<int64_t> next_refresh_{0};
  std::atomic<int64_t> seldom_refresh_{INT64_MAX};
  std::atomic<uintptr_t> refresh_pages_{kFirstLook.pages()};
  std::atomic<uintptr_t> soft_pages_{Length::Max().pages()};

  uint64_t wanted_ TCMALLOC_GUARDED_BY(lock_) = UINT64_MAX;  // by the option or the program
  Cgroup& cgroup_ TCMALLOC_GUARDED_BY(lock_);
  CgroupLimits cgroup_limits_ TCMALLOC_GUARDED_BY(lock_);
  uint64_t resident_ TCMALLOC_GUARDED_BY(lock_) = 0;  // bytes, when it was last read
  bool pressure_is_new_ TCMALLOC_GUARDED_BY(lock_) = false;
  bool shed_for_limit_ TCMALLOC_GUARDED_BY(lock_) = false;  // else for pressure
  int64_t next_shed_ TCMALLOC_GUARDED_BY(lock_) = 0;
  int64_t pause_ TCMALLOC_GUARDED_BY(lock_) = 0;

  std::atomic<uint64_t> soft_hits_{0};
  std::atomic<uint64_t> soft_shrinks_{0};
  std::atomic<uint64_t> pressure_hits_{0};
  std::atomic<uint64_t> shed_caches_{0};
  std::atomic<uint64_t> shed_transfer_{0};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UPKEEP_LIMITS_H_
