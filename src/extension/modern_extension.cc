// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that the headers in include/tcmalloc call, without any type of the C++ library.
// They take locks of the heap only inside the slow path.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include <algorithm>
#include <string_view>

#include "allocator/slow_path.h"
#include "extension/properties.h"
#include "extension/release.h"
#include "heap/heap.h"
#include "report/current_statistics.h"
#include "report/report.h"

namespace tcmalloc {
namespace {

// Calls f inside the slow path, on an initialized heap. Returns `otherwise` if no lock may be
// taken.
template <typename F, typename Result>
Result Inside(Result otherwise, F f) {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return otherwise;
  heap.EnsureInitialized();
  return f(slow_path);
}

template <typename F>
void Inside(F f) {
  Inside(0, [&](const SlowPath& slow_path) {
    f(slow_path);
    return 0;
  });
}

bool IsReentrant() {
  return Inside(true, [](const SlowPath&) { return false; });
}

// Gives back memory above the limit at once, as far as it is not in use.
void ShedAboveHardLimit(const SlowPath& slow_path) {
  const Length limit(heap.hard_limit() >> kPageShift);
  const Length committed = heap.page_heap().committed();
  if (limit == Length(0) || committed <= limit) return;
  heap.limits().NoteShed(slow_path.Shed(committed - limit, ReleaseCause::kHardLimit));
}

}  // namespace
}  // namespace tcmalloc

using tcmalloc::heap;
using tcmalloc::Inside;
using tcmalloc::SlowPath;

#pragma GCC visibility push(default)
extern "C" {

size_t tcmalloc_get_stats(char* buffer, size_t size) {
  tcmalloc::PrefixSink sink(buffer, size);
  tcmalloc::WriteTextReport(sink, 2);
  return sink.written();
}

bool tcmalloc_get_numeric_property(const char* name, size_t length, size_t* value) {
  return Inside(false, [&](const SlowPath&) {
    uint64_t found = 0;
    if (!tcmalloc::GetProperty({name, length}, &found)) return false;
    *value = found;
    return true;
  });
}

size_t tcmalloc_get_properties(tcmalloc_property* properties, size_t count) {
  return Inside(size_t{0}, [&](const SlowPath&) {
    tcmalloc::Moment moment;
    // All figures are of this moment.
    if (count > 0) static_cast<void>(moment.statistics());
    size_t i = 0;
    for (const tcmalloc::Property& property : tcmalloc::Properties()) {
      if (i < count) properties[i] = {property.name.data(), property.get(moment)};
      ++i;
    }
    return i;
  });
}

void tcmalloc_mark_thread_idle() { tcmalloc::FlushThreadCache(); }

size_t tcmalloc_release_cpu_memory(int cpu) {
  return Inside(size_t{0}, [cpu](const SlowPath&) { return heap.cpus().Release(cpu); });
}

void tcmalloc_release_memory_to_system(size_t bytes) { tcmalloc::ReleaseFreeSpans(bytes); }

size_t tcmalloc_get_memory_limit(bool hard) {
  const uint64_t limit = Inside(uint64_t{0}, [hard](const SlowPath&) {
    return hard ? heap.hard_limit() : heap.soft_limit();
  });
  return limit == 0 ? SIZE_MAX : limit;
}

void tcmalloc_set_memory_limit(size_t bytes, bool hard) {
  if (bytes == SIZE_MAX) bytes = 0;
  Inside([=](const SlowPath& slow_path) {
    if (hard) {
      heap.SetHardLimit(bytes);
      tcmalloc::ShedAboveHardLimit(slow_path);
    } else {
      heap.SetSoftLimit(bytes);
      slow_path.FollowLimits();
    }
  });
}

bool tcmalloc_per_cpu_caches_active() {
  return heap.front_end().wanted() == tcmalloc::FrontEnd::kPerCpu;
}

size_t tcmalloc_get_max_per_cpu_cache_size() {
  return Inside(size_t{0}, [](const SlowPath&) { return heap.max_per_cpu_cache_size(); });
}
void tcmalloc_set_max_per_cpu_cache_size(size_t bytes) {
  Inside([bytes](const SlowPath&) { heap.SetMaxPerCpuCacheSize(bytes); });
}

size_t tcmalloc_get_max_total_thread_cache_bytes() {
  return Inside(size_t{0}, [](const SlowPath&) { return heap.max_total_thread_cache_bytes(); });
}
void tcmalloc_set_max_total_thread_cache_bytes(size_t bytes) {
  Inside([bytes](const SlowPath&) { heap.SetMaxTotalThreadCacheBytes(bytes); });
}

bool tcmalloc_get_background_enabled() { return heap.background().enabled(); }

void tcmalloc_set_background_enabled(bool enabled) {
  if (tcmalloc::IsReentrant()) return;
  if (enabled) {
    heap.background().Start();
  } else {
    heap.background().Stop();
  }
}

int64_t tcmalloc_get_background_interval_ns() {
  return static_cast<int64_t>(heap.background().interval());
}
void tcmalloc_set_background_interval_ns(int64_t ns) {
  heap.background().set_interval(static_cast<uint64_t>(std::max(ns, int64_t{0})));
}

size_t tcmalloc_get_background_release_rate() { return heap.housekeeping().release_speed(); }
void tcmalloc_set_background_release_rate(size_t bytes_per_second) {
  heap.housekeeping().set_release_speed(bytes_per_second);
  heap.background().Wake();
}

void tcmalloc_run_background_actions() {
  if (tcmalloc::IsReentrant()) return;
  tcmalloc::FlushThreadCache();
  heap.background().RunForever();
}

}  // extern "C"
#pragma GCC visibility pop
