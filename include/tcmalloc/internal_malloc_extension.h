// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions that tcmalloc/malloc_extension.h calls. Not for programs: names and types here may
// change with any version of the headers, though not within a version of the library's name
// (.so.4).
//
// All references are weak: where the library is absent they are null.

#ifndef TCMALLOC_INCLUDE_TCMALLOC_INTERNAL_MALLOC_EXTENSION_H_
#define TCMALLOC_INCLUDE_TCMALLOC_INTERNAL_MALLOC_EXTENSION_H_

#include <stddef.h>
#include <stdint.h>

// The library itself defines it as nothing.
#ifndef TCMALLOC_OPTIONAL
#define TCMALLOC_OPTIONAL __attribute__((weak))
#endif

struct tcmalloc_property {
  const char* name;  // a constant
  size_t value;
};

// A profile that was collected, or is being collected.
struct tcmalloc_profile;

// One row of a profile.
struct tcmalloc_profile_sample {
  size_t address;         // of the block
  int64_t sum;            // bytes of all blocks for which it stands
  int64_t count;          // of those blocks
  size_t requested_size;  // of each
  size_t requested_alignment;
  size_t allocated_size;
  uint32_t thread;      // that allocated the block
  int64_t age_ns;       // of the block at the end of the profile
  int64_t lifetime_ns;  // 0 if the profile is not about lifetimes
  bool is_censored;
  int depth;
  void* const* stack;  // return addresses, innermost first
};
namespace tcmalloc {
struct SampledAllocation;
}
using tcmalloc_sampled_hook = void (*)(const tcmalloc::SampledAllocation& sample);

// A call site that is suspected to leak; tcmalloc/leak_suspects.h tells what the fields are.
struct tcmalloc_leak_suspect {
  uint64_t samples;
  double blocks;
  double bytes;
  double bytes_per_minute;
  int64_t oldest_ns;
  double confidence;
  int depth;
  void* stack[64];
};
using tcmalloc_profile_writer = void (*)(const char* bytes, size_t count, void* argument);
using tcmalloc_profile_visitor = void (*)(const tcmalloc_profile_sample* sample, void* argument);

extern "C" {

// Returns the length of the whole text, and writes as much of it as fits, without a zero byte.
TCMALLOC_OPTIONAL size_t tcmalloc_get_stats(char* buffer, size_t size);
TCMALLOC_OPTIONAL bool tcmalloc_get_numeric_property(const char* name, size_t length,
                                                     size_t* value);
// Returns the number of all properties, and writes as many as fit.
TCMALLOC_OPTIONAL size_t tcmalloc_get_properties(tcmalloc_property* properties, size_t count);

TCMALLOC_OPTIONAL void tcmalloc_mark_thread_idle();
TCMALLOC_OPTIONAL size_t tcmalloc_release_cpu_memory(int cpu);
TCMALLOC_OPTIONAL void tcmalloc_release_memory_to_system(size_t bytes);

// `hard` chooses the limit.
TCMALLOC_OPTIONAL size_t tcmalloc_get_memory_limit(bool hard);
TCMALLOC_OPTIONAL void tcmalloc_set_memory_limit(size_t bytes, bool hard);

TCMALLOC_OPTIONAL bool tcmalloc_per_cpu_caches_active();
TCMALLOC_OPTIONAL size_t tcmalloc_get_max_per_cpu_cache_size();
TCMALLOC_OPTIONAL void tcmalloc_set_max_per_cpu_cache_size(size_t bytes);
TCMALLOC_OPTIONAL size_t tcmalloc_get_max_total_thread_cache_bytes();
TCMALLOC_OPTIONAL void tcmalloc_set_max_total_thread_cache_bytes(size_t bytes);

TCMALLOC_OPTIONAL bool tcmalloc_get_background_enabled();
TCMALLOC_OPTIONAL void tcmalloc_set_background_enabled(bool enabled);
TCMALLOC_OPTIONAL int64_t tcmalloc_get_background_interval_ns();
TCMALLOC_OPTIONAL void tcmalloc_set_background_interval_ns(int64_t ns);
TCMALLOC_OPTIONAL size_t tcmalloc_get_background_release_rate();
TCMALLOC_OPTIONAL void tcmalloc_set_background_release_rate(size_t bytes_per_second);
TCMALLOC_OPTIONAL void tcmalloc_run_background_actions();

TCMALLOC_OPTIONAL size_t tcmalloc_get_estimated_allocated_size(size_t size);
// Returns false if the block is not one of the allocator's.
TCMALLOC_OPTIONAL bool tcmalloc_get_allocated_size(const void* block, size_t* size);
TCMALLOC_OPTIONAL bool tcmalloc_owns(const void* block);

// Only libraries with profiles have these. The kinds are those of ProfileKind in
// heap_profile/collected_profile.h.
TCMALLOC_OPTIONAL int64_t tcmalloc_get_sample_period();
TCMALLOC_OPTIONAL void tcmalloc_set_sample_period(int64_t bytes);
TCMALLOC_OPTIONAL int64_t tcmalloc_get_guarded_sampling_interval();
TCMALLOC_OPTIONAL void tcmalloc_set_guarded_sampling_interval(int64_t bytes);
TCMALLOC_OPTIONAL void tcmalloc_activate_guarded_sampling();
// Return null if no memory can be had.
TCMALLOC_OPTIONAL tcmalloc_profile* tcmalloc_profile_take(int kind);
TCMALLOC_OPTIONAL tcmalloc_profile* tcmalloc_profile_begin(int kind);
TCMALLOC_OPTIONAL void tcmalloc_profile_end(tcmalloc_profile* profile);
TCMALLOC_OPTIONAL void tcmalloc_profile_delete(tcmalloc_profile* profile);
TCMALLOC_OPTIONAL void tcmalloc_profile_times(const tcmalloc_profile* profile, int64_t* begin_ns,
                                              int64_t* duration_ns);
TCMALLOC_OPTIONAL void tcmalloc_profile_iterate(const tcmalloc_profile* profile,
                                                tcmalloc_profile_visitor visit, void* argument);
// Return false if not all of it was written.
TCMALLOC_OPTIONAL bool tcmalloc_profile_marshal(const tcmalloc_profile* profile,
                                                tcmalloc_profile_writer write, void* argument);
TCMALLOC_OPTIONAL bool tcmalloc_write_heap_profile(const char* path);
// `of_frees` chooses the list of hooks.
TCMALLOC_OPTIONAL bool tcmalloc_add_sampled_hook(bool of_frees, tcmalloc_sampled_hook hook);
TCMALLOC_OPTIONAL bool tcmalloc_remove_sampled_hook(bool of_frees, tcmalloc_sampled_hook hook);
TCMALLOC_OPTIONAL void tcmalloc_invoke_sampled_hooks(bool of_frees,
                                                     const tcmalloc::SampledAllocation* sample);
// Stores at most `most` suspects, the fastest first, and returns their number.
TCMALLOC_OPTIONAL size_t tcmalloc_find_leak_suspects(tcmalloc_leak_suspect* suspects, size_t most);

}  // extern "C"

#endif  // TCMALLOC_INCLUDE_TCMALLOC_INTERNAL_MALLOC_EXTENSION_H_
