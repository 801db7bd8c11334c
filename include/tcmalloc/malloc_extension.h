// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What a program can ask the allocator, and ask of it: the interface of google/tcmalloc, with types
// of the standard library. docs/api.md tells which header is for what. For C++ from C++17 on.
//
// A program that calls these functions needs the library neither to link nor to run: without it
// they do nothing and return what each says. (Compiled without -fPIE or -fPIC, it finds the library
// only if it was linked with it.)
//
// Everything here is thread safe, keeps errno, and may be called before main, in destructors and in
// the child of a fork, unless a function says otherwise. In a signal handler that interrupted the
// allocator, what would have to wait does nothing and returns what it returns without the library.
// What returns a string or a container allocates it and may throw std::bad_alloc; nothing else here
// throws. No function takes over an object of the caller's or hands one out. Sizes are in bytes.

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

namespace tcmalloc {

class MallocExtension final {
 public:
  MallocExtension() = delete;

  // --- Statistics

  // Statistics for people, in the format of gperftools. Empty without the library.
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
      // It may grow until the next call.
      size += size / 8;
    }
  }

  // One number by its name; docs/malloc-extension.md lists them. Nothing without the library, or if
  // there is no such property.
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

  // The numbers of the table in docs/malloc-extension.md by their names. Empty without the library.
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

  // The calling thread will allocate nothing for a while: what its own cache holds goes back to the
  // shared lists. It may allocate again at any time. Changes nothing for a thread that is served by
  // the caches of CPUs, which it shares with others.
  static void MarkThreadIdle() {
    if (tcmalloc_mark_thread_idle != nullptr) tcmalloc_mark_thread_idle();
  }
  // The contrary. Does nothing, for a thread is busy as soon as it allocates.
  static void MarkThreadBusy() {}

  // Returns what one cache of a CPU holds to the shared lists, and how many bytes that were. `cpu`
  // is the number that tells the caches apart, as TCMALLOC_CPU_IDS says: a concurrency id, of which
  // there are no more than threads run at once, or the number of the CPU. 0 if it has no cache.
  static size_t ReleaseCpuMemory(int cpu) {
    return tcmalloc_release_cpu_memory != nullptr ? tcmalloc_release_cpu_memory(cpu) : 0;
  }

  // Gives at least so many bytes of free pages back to the system, if there are so many; what
  // caches hold stays there. Keeps what the system refuses to take.
  static void ReleaseMemoryToSystem(size_t num_bytes) {
    if (tcmalloc_release_memory_to_system != nullptr) tcmalloc_release_memory_to_system(num_bytes);
  }

  // --- Limits

  // On what the heap has resident, caches included; docs/limits-and-containers.md tells what
  // counts.
  enum class LimitKind {
    kSoft,  // above it, memory is given back; nothing fails
    kHard,  // what does not fit, even after all that is free was given back, fails: malloc returns
            // null with ENOMEM, and new throws std::bad_alloc; the process is not ended
  };

  // The limit that was set last, or by TCMALLOC_SOFT_LIMIT_MB and TCMALLOC_HEAP_LIMIT_MB. Without
  // one, and without the library, the largest number. A control group can only lower what is in
  // force: see the properties tcmalloc.desired_usage_limit_bytes and
  // tcmalloc.hard_usage_limit_bytes.
  [[nodiscard]] static size_t GetMemoryLimit(LimitKind limit_kind) {
    return tcmalloc_get_memory_limit != nullptr
               ? tcmalloc_get_memory_limit(limit_kind == LimitKind::kHard)
               : std::numeric_limits<size_t>::max();
  }
  // Sets a limit, which is rounded up to a page; 0 and the largest number remove it. Where the heap
  // has more already, it gives back what it can before this returns.
  static void SetMemoryLimit(size_t limit, LimitKind limit_kind) {
    if (tcmalloc_set_memory_limit == nullptr) return;
    tcmalloc_set_memory_limit(limit, limit_kind == LimitKind::kHard);
  }

  // --- Caches

  // True if the caches of CPUs serve the threads now, and not their own.
  [[nodiscard]] static bool PerCpuCachesActive() {
    return tcmalloc_per_cpu_caches_active != nullptr && tcmalloc_per_cpu_caches_active();
  }

  // The most that the cache of a CPU may hold, and that the caches of all threads may hold
  // together: what was set last, or by TCMALLOC_MAX_PER_CPU_CACHE_SIZE and
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
  // They take place on threads that the program lends, or else on one of the allocator's. Where
  // there is none, threads that allocate do it in between.

  // True if background actions take place.
  [[nodiscard]] static bool GetBackgroundProcessActionsEnabled() {
    return tcmalloc_get_background_enabled != nullptr && tcmalloc_get_background_enabled();
  }
  // true lets them take place, from now on in each child of fork too: unless the program has lent a
  // thread, the allocator starts one, named "tcmalloc", which blocks all signals; in a child when
  // it first allocates. Where the system refuses a thread, nothing changes. false ends that thread
  // and returns once it has ended; threads that the program lent pause until true. Of calls at the
  // same time the last word counts. TCMALLOC_BACKGROUND=1 stands for a call before main. Not for
  // signal handlers.
  static void SetBackgroundProcessActionsEnabled(bool value) {
    if (tcmalloc_set_background_enabled != nullptr) tcmalloc_set_background_enabled(value);
  }

  // The least time between two rounds of background actions. 0, as at first and without the
  // library, lets them come as often as the half-life of unused memory calls for
  // (TCMALLOC_RELEASE_HALF_LIFE). What a longer interval misses is made up for in the next round.
  // A negative interval counts as 0.
  [[nodiscard]] static std::chrono::nanoseconds GetBackgroundProcessSleepInterval() {
    return std::chrono::nanoseconds(
        tcmalloc_get_background_interval_ns != nullptr ? tcmalloc_get_background_interval_ns() : 0);
  }
  static void SetBackgroundProcessSleepInterval(std::chrono::nanoseconds value) {
    if (tcmalloc_set_background_interval_ns == nullptr) return;
    tcmalloc_set_background_interval_ns(std::max<int64_t>(value.count(), 0));
  }

  // How much of the free pages background actions give back in any case, in addition to what was
  // not used for a while. 0 at first, and without the library.
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

  // Lends the calling thread: it carries out background actions and never returns; where they were
  // disabled before, it pauses until they are enabled. It blocks all signals and cannot be
  // cancelled. A child of fork has no such thread. Returns at once without the library. Not for
  // signal handlers.
  static void ProcessBackgroundActions() {
    if (tcmalloc_run_background_actions != nullptr) tcmalloc_run_background_actions();
  }
  // Whether a thread for ProcessBackgroundActions would have something to do: the library is there,
  // and background actions do not take place yet.
  [[nodiscard]] static bool NeedsProcessBackgroundActions() {
    return tcmalloc_run_background_actions != nullptr && !GetBackgroundProcessActionsEnabled();
  }

  // --- Blocks

  // How many bytes a block would have that is asked for with `size`; 0 if none can be that large.
  // `size` without the library.
  [[nodiscard]] static size_t GetEstimatedAllocatedSize(size_t size) {
    return tcmalloc_get_estimated_allocated_size != nullptr
               ? tcmalloc_get_estimated_allocated_size(size)
               : size;
  }
  // How many bytes the owner of the block `p` may use; 0 for null. Nothing without the library, or
  // where GetOwnership does not say kOwned. Ends the process on a pointer into the middle of a
  // block.
  [[nodiscard]] static std::optional<size_t> GetAllocatedSize(const void* p) {
    size_t size = 0;
    if (tcmalloc_get_allocated_size == nullptr || !tcmalloc_get_allocated_size(p, &size)) {
      return std::nullopt;
    }
    return size;
  }

  enum class Ownership { kUnknown = 0, kOwned, kNotOwned };
  // kOwned for a block of this allocator, for a small one even after it was freed, and kNotOwned
  // for what lies outside the heap. A pointer into the middle of a block may give either. Any value
  // may be asked for, null too. kUnknown without the library.
  [[nodiscard]] static Ownership GetOwnership(const void* p) {
    if (tcmalloc_owns == nullptr) return Ownership::kUnknown;
    return tcmalloc_owns(p) ? Ownership::kOwned : Ownership::kNotOwned;
  }

 private:
  // Holds all statistics most of the time.
  static constexpr size_t kUsualStats = 40960;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_INCLUDE_TCMALLOC_MALLOC_EXTENSION_H_
