// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Statistics and controls of the allocator: the interface of google/tcmalloc, with types of the
// standard library. docs/api.md lists the purpose of each header. For C++ from C++17 on.
//
// A program that calls these functions needs the library neither to link nor to run. Without the
// library they do nothing and return the value that each names. (Compiled without -fPIE or -fPIC,
// the program finds the library only if it was linked with it.)
//
// Everything here is thread safe, keeps errno, and may be called before main, in destructors and in
// the child of a fork, unless a function says otherwise. In a signal handler that interrupted the
// allocator, functions that would have to wait do nothing and return the same as without the
// library. Functions that return a string or a container allocate it and may throw std::bad_alloc;
// nothing else here throws. No function takes over an object of the caller's or hands one out.
// Sizes are in bytes.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_MALLOC_EXTENSION_H_
#define TCMALLOC_INCLUDE_TCMALLOC_MALLOC_EXTENSION_H_

#include <stddef.h>
#include <stdint.h>

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tcmalloc/internal_malloc_extension.h"
#include "tcmalloc/new_extension.h"
#include "tcmalloc/profile.h"

namespace tcmalloc {

class MallocExtension final {
 public:
  MallocExtension() = delete;

  // --- Statistics

  // Returns statistics for people, in the format of gperftools. Empty without the library.
  [[nodiscard]] static std::string GetStats() {
    std::string text;
    if (tcmalloc_get_stats == nullptr) return text;
    for (size_t size = kUsualStats; true;) {
      text.resize(size);
      size = tcmalloc_get_stats(&text[0], text.size());
      if (size <= text.size()) {
        text.resize(size);
        return text;
      }
      // The text may grow until the next call.
      size += size / 8;
    }
  }

  // Reads one number by its name; docs/malloc-extension.md lists them. No value without the
  // library, or if there is no such property.
  [[nodiscard]] static std::optional<size_t> GetNumericProperty(std::string_view property) {
    size_t value = 0;
    if (tcmalloc_get_numeric_property == nullptr ||
        !tcmalloc_get_numeric_property(property.data(), property.size(), &value)) {
      return std::nullopt;
    }
    return value;
  }

  struct Property {
    size_t value;
  };
  using PropertyMap = std::map<std::string, Property>;

  // Returns the numbers of the table in docs/malloc-extension.md by their names. Empty without the
  // library.
  [[nodiscard]] static PropertyMap GetProperties() {
    PropertyMap map;
    if (tcmalloc_get_properties == nullptr) return map;
    std::vector<tcmalloc_property> properties(tcmalloc_get_properties(nullptr, 0));
    const size_t count = tcmalloc_get_properties(properties.data(), properties.size());
    properties.resize(std::min(count, properties.size()));
    for (const tcmalloc_property& property : properties) map[property.name] = {property.value};
    return map;
  }

  // --- Giving memory back

  // Tells that the calling thread will allocate nothing for a while. The objects in its own cache
  // go back to the shared lists. It may allocate again at any time. Changes nothing for a thread
  // that is served by the caches of CPUs, which it shares with others.
  static void MarkThreadIdle() {
    if (tcmalloc_mark_thread_idle != nullptr) tcmalloc_mark_thread_idle();
  }
  // Ends that state. Does nothing, because a thread is busy as soon as it allocates.
  static void MarkThreadBusy() {}

  // Returns the objects in one cache of a CPU to the shared lists. Returns their bytes; 0 if there
  // is no such cache. `cpu` is the number that tells the caches apart, according to
  // TCMALLOC_CPU_IDS: a concurrency id, of which there are no more than threads run at once, or the
  // number of the CPU.
  static size_t ReleaseCpuMemory(int cpu) {
    return tcmalloc_release_cpu_memory != nullptr ? tcmalloc_release_cpu_memory(cpu) : 0;
  }

  // Gives at least this many bytes of free pages back to the system, or all if there are fewer.
  // Cached memory stays in the caches. Keeps pages that the system refuses to take.
  static void ReleaseMemoryToSystem(size_t num_bytes) {
    if (tcmalloc_release_memory_to_system != nullptr) tcmalloc_release_memory_to_system(num_bytes);
  }

  // --- Limits

  // Limits on the resident memory of the heap, including caches; docs/limits-and-containers.md says
  // what counts.
  enum class LimitKind {
    kSoft,  // above it, memory is given back; nothing fails
    kHard,  // what does not fit, even after all that is free was given back, fails: malloc returns
            // null with ENOMEM, and new throws std::bad_alloc; the process is not ended
  };

  // Returns the limit that was set last, or by TCMALLOC_SOFT_LIMIT_MB and TCMALLOC_HEAP_LIMIT_MB.
  // Without one, and without the library, returns the largest number. A control group can only
  // lower the limit in force: see the properties tcmalloc.desired_usage_limit_bytes and
  // tcmalloc.hard_usage_limit_bytes.
  [[nodiscard]] static size_t GetMemoryLimit(LimitKind limit_kind) {
    return tcmalloc_get_memory_limit != nullptr
               ? tcmalloc_get_memory_limit(limit_kind == LimitKind::kHard)
               : std::numeric_limits<size_t>::max();
  }
  // Sets a limit, which is rounded up to a page; 0 and the largest number remove it. If the heap
  // has more already, it gives back as much as it can before this returns.
  static void SetMemoryLimit(size_t limit, LimitKind limit_kind) {
    if (tcmalloc_set_memory_limit == nullptr) return;
    tcmalloc_set_memory_limit(limit, limit_kind == LimitKind::kHard);
  }

  // --- Caches

  // Returns true if the caches of CPUs serve the threads now, instead of their own caches.
  [[nodiscard]] static bool PerCpuCachesActive() {
    return tcmalloc_per_cpu_caches_active != nullptr && tcmalloc_per_cpu_caches_active();
  }

  // The most that the cache of a CPU may hold, and that the caches of all threads may hold
  // together: the value set last, or by TCMALLOC_MAX_PER_CPU_CACHE_SIZE and
  // TCMALLOC_MAX_TOTAL_THREAD_CACHE_BYTES. Limits of the heap may allow less. 0 without the
  // library. A value outside the range becomes the nearest one inside: 64 KiB to 1 GiB, and 512 KiB
  // to 1 GiB. Caches that hold more shrink as they are used.
  [[nodiscard]] static int32_t GetMaxPerCpuCacheSize() {
    return tcmalloc_get_max_per_cpu_cache_size != nullptr
               ? static_cast<int32_t>(tcmalloc_get_max_per_cpu_cache_size())
               : 0;
  }
  static void SetMaxPerCpuCacheSize(int32_t value) {
    if (tcmalloc_set_max_per_cpu_cache_size == nullptr) return;
    tcmalloc_set_max_per_cpu_cache_size(static_cast<size_t>(std::max(value, int32_t{0})));
  }
  [[nodiscard]] static int64_t GetMaxTotalThreadCacheBytes() {
    return tcmalloc_get_max_total_thread_cache_bytes != nullptr
               ? static_cast<int64_t>(tcmalloc_get_max_total_thread_cache_bytes())
               : 0;
  }
  static void SetMaxTotalThreadCacheBytes(int64_t value) {
    if (tcmalloc_set_max_total_thread_cache_bytes == nullptr) return;
    tcmalloc_set_max_total_thread_cache_bytes(static_cast<size_t>(std::max(value, int64_t{0})));
  }

  // --- Background actions: unused memory goes back to the system while the program is idle, and
  // --- the limits of control groups are followed.
  //
  // They take place on threads that the program lends, or else on one of the allocator's. Without
  // such a thread, allocating threads carry them out in between.

  // Returns true if background actions take place.
  [[nodiscard]] static bool GetBackgroundProcessActionsEnabled() {
    return tcmalloc_get_background_enabled != nullptr && tcmalloc_get_background_enabled();
  }
  // Enables or disables background actions, from now on in each child of fork too. If enabled, the
  // allocator starts a thread named "tcmalloc", which blocks all signals, unless the program has
  // lent a thread; in a child when it first allocates. If the system refuses a thread, nothing
  // changes. Disabling ends that thread and returns once it has ended; lent threads pause until the
  // actions are enabled. Of simultaneous calls the last one counts. TCMALLOC_BACKGROUND=1 is
  // equivalent to a call before main. Not for signal handlers.
  static void SetBackgroundProcessActionsEnabled(bool value) {
    if (tcmalloc_set_background_enabled != nullptr) tcmalloc_set_background_enabled(value);
  }

  // The least time between two rounds of background actions. 0, which is the default and the value
  // without the library, lets them run as often as the half-life of unused memory demands
  // (TCMALLOC_RELEASE_HALF_LIFE). The next round makes up for the work that a longer interval
  // delays. A negative interval counts as 0.
  [[nodiscard]] static std::chrono::nanoseconds GetBackgroundProcessSleepInterval() {
    return std::chrono::nanoseconds(
        tcmalloc_get_background_interval_ns != nullptr ? tcmalloc_get_background_interval_ns() : 0);
  }
  static void SetBackgroundProcessSleepInterval(std::chrono::nanoseconds value) {
    if (tcmalloc_set_background_interval_ns == nullptr) return;
    tcmalloc_set_background_interval_ns(value.count());
  }

  // The rate at which background actions give back free pages in any case, in addition to pages
  // that were not used for a while. 0 by default and without the library.
  enum class BytesPerSecond : size_t {};
  [[nodiscard]] static BytesPerSecond GetBackgroundReleaseRate() {
    return static_cast<BytesPerSecond>(tcmalloc_get_background_release_rate != nullptr
                                           ? tcmalloc_get_background_release_rate()
                                           : 0);
  }
  static void SetBackgroundReleaseRate(BytesPerSecond rate) {
    if (tcmalloc_set_background_release_rate == nullptr) return;
    tcmalloc_set_background_release_rate(static_cast<size_t>(rate));
  }

  // Lends the calling thread: it carries out background actions and never returns. If they were
  // disabled before, it pauses until they are enabled. It blocks all signals and cannot be
  // cancelled. A child of fork has no such thread. Returns at once without the library. Not for
  // signal handlers.
  static void ProcessBackgroundActions() {
    if (tcmalloc_run_background_actions != nullptr) tcmalloc_run_background_actions();
  }
  // Returns true if a thread for ProcessBackgroundActions would have work: the library is there,
  // and background actions do not take place yet.
  [[nodiscard]] static bool NeedsProcessBackgroundActions() {
    return tcmalloc_run_background_actions != nullptr && !GetBackgroundProcessActionsEnabled();
  }

  // --- Profiles; only libraries with profiles have them, libtcmalloc but not libtcmalloc_minimal

  // The mean number of bytes between two samples, 0 for none. Set last, or by
  // TCMALLOC_SAMPLE_PARAMETER. Each thread follows within its next 200 KiB or so. 0 without
  // profiles; a negative value counts as 0.
  [[nodiscard]] static int64_t GetProfileSamplingInterval() {
    return tcmalloc_get_sample_period != nullptr ? tcmalloc_get_sample_period() : 0;
  }
  static void SetProfileSamplingInterval(int64_t interval) {
    if (tcmalloc_set_sample_period != nullptr) tcmalloc_set_sample_period(interval);
  }

  // Guarded sampling puts some samples of up to a page between inaccessible pages, so that a use
  // beyond their end, before their beginning or after their free is reported on stderr with its
  // stacks; see docs/subsystems/guarded-sampling.md.
  //
  // The mean number of bytes that the program allocates between two guarded blocks: 50 sampling
  // intervals, or what was set last or by TCMALLOC_GUARDED_SAMPLE_PARAMETER. 0 guards every sample
  // that fits, a negative number none. -1 without profiles.
  [[nodiscard]] static int64_t GetGuardedSamplingInterval() {
    return tcmalloc_get_guarded_sampling_interval != nullptr
               ? tcmalloc_get_guarded_sampling_interval()
               : -1;
  }
  static void SetGuardedSamplingInterval(int64_t interval) {
    if (tcmalloc_set_guarded_sampling_interval != nullptr) {
      tcmalloc_set_guarded_sampling_interval(interval);
    }
  }
  // Guards blocks from now on, for the rest of the process, at that interval. The variable does the
  // same from the start unless it is negative. From the first guarded block on, a handler of
  // SIGSEGV goes before the program's own.
  static void ActivateGuardedSampling() {
    if (tcmalloc_activate_guarded_sampling != nullptr) tcmalloc_activate_guarded_sampling();
  }

  // Returns a profile of the present: of what is live now, of what was live when the heap was
  // largest (to within a sixteenth), or of who keeps free bytes from going back to the system. A
  // profile of any other type has no samples, nor has one without profiles. Not for signal
  // handlers, as all below.
  [[nodiscard]] static Profile SnapshotCurrent(ProfileType type) {
    if (type != ProfileType::kHeap && type != ProfileType::kPeakHeap &&
        type != ProfileType::kFragmentation) {
      return Profile(type, nullptr);
    }
    if (tcmalloc_profile_take == nullptr) return Profile(type, nullptr);
    return Profile(type, tcmalloc_profile_take(Profile::KindOf(type)));
  }

  // A profile under way.
  class [[nodiscard]] AllocationProfilingToken {
   public:
    AllocationProfilingToken() = default;  // of no profile
    AllocationProfilingToken(AllocationProfilingToken&&) = default;
    AllocationProfilingToken& operator=(AllocationProfilingToken&&) = default;

    // Ends the profile and returns it. A token that goes out of scope ends it as well.
    Profile Stop() && {
      profile_.End();
      return std::move(profile_);
    }

   private:
    friend class MallocExtension;
    explicit AllocationProfilingToken(ProfileType type)
        : profile_(type, tcmalloc_profile_begin != nullptr
                             ? tcmalloc_profile_begin(Profile::KindOf(type))
                             : nullptr) {}

    Profile profile_;
  };

  // Begins a profile of what is allocated from now on, whether it is freed meanwhile or not.
  static AllocationProfilingToken StartAllocationProfiling() {
    return AllocationProfilingToken(ProfileType::kAllocations);
  }
  // Begins a profile of how long blocks live. Blocks that were allocated before, and those that are
  // not freed until its end, are marked as censored.
  static AllocationProfilingToken StartLifetimeProfiling() {
    return AllocationProfilingToken(ProfileType::kLifetimes);
  }

  // --- Blocks

  // Returns the bytes that a block for a request of `size` would have; 0 if no block can be that
  // large. Returns `size` without the library.
  [[nodiscard]] static size_t GetEstimatedAllocatedSize(size_t size) {
    return tcmalloc_get_estimated_allocated_size != nullptr
               ? tcmalloc_get_estimated_allocated_size(size)
               : size;
  }
  // Returns the bytes that the owner of the block `p` may use; 0 for null. No value without the
  // library, or if GetOwnership does not return kOwned. Ends the process on a pointer into the
  // middle of a block.
  [[nodiscard]] static std::optional<size_t> GetAllocatedSize(const void* p) {
    size_t size = 0;
    if (tcmalloc_get_allocated_size == nullptr || !tcmalloc_get_allocated_size(p, &size)) {
      return std::nullopt;
    }
    return size;
  }

  enum class Ownership { kUnknown = 0, kOwned, kNotOwned };
  // Returns kOwned for a block of this allocator, even for a small one that was freed, and
  // kNotOwned for addresses outside the heap. A pointer into the middle of a block may give either.
  // Any value may be passed, null too. Returns kUnknown without the library.
  [[nodiscard]] static Ownership GetOwnership(const void* p) {
    if (tcmalloc_owns == nullptr) return Ownership::kUnknown;
    return tcmalloc_owns(p) ? Ownership::kOwned : Ownership::kNotOwned;
  }

 private:
  // Has room for all statistics most of the time.
  static constexpr size_t kUsualStats = 40960;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_MALLOC_EXTENSION_H_
