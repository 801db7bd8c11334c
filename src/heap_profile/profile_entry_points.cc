// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The functions by which tcmalloc/malloc_extension.h, tcmalloc/profile_marshaler.h and
// tcmalloc/malloc_hook.h reach the profiles. Libraries without profiles do not have them.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include "guarded/guarded_blocks.h"
#include "heap_profile/collected_profile.h"
#include "heap_profile/profile_writer.h"
#include "heap_profile/profiles.h"
#include "heap_profile/whole_blocks.h"
#include "hook/hooks.h"

namespace tcmalloc {
namespace {

CollectedProfile* Of(tcmalloc_profile* profile) {
  return reinterpret_cast<CollectedProfile*>(profile);
}
const CollectedProfile* Of(const tcmalloc_profile* profile) {
  return reinterpret_cast<const CollectedProfile*>(profile);
}
tcmalloc_profile* Handle(CollectedProfile* profile) {
  return reinterpret_cast<tcmalloc_profile*>(profile);
}

// Hands the bytes of a profile to a function of the program's.
class CallbackSink final : public ByteSink {
 public:
  CallbackSink(tcmalloc_profile_writer write, void* argument)
      : write_(write), argument_(argument) {}
  void Write(std::string_view bytes) override { write_(bytes.data(), bytes.size(), argument_); }

 private:
  tcmalloc_profile_writer write_;
  void* argument_;
};

tcmalloc_profile_sample Describe(const CollectedProfile& profile, const ProfileRow& row,
                                 int64_t count) {
  const Sample& sample = row.sample;
  const double bytes = profile.kind == ProfileKind::kFragmentation
                           ? row.pinned
                           : static_cast<double>(sample.allocated);
  return {.address = sample.address,
          .sum = static_cast<int64_t>(sample.weight * bytes),
          .count = count,
          .requested_size = sample.requested,
          .requested_alignment = sample.alignment,
          .allocated_size = sample.allocated,
          .thread = sample.thread,
          .age_ns = profile.end_ns - sample.time_ns,
          .lifetime_ns = row.end_ns != 0 ? row.end_ns - sample.time_ns : 0,
          .is_censored = row.censored,
          .depth = 0,
          .stack = nullptr};
}

}  // namespace
}  // namespace tcmalloc

using tcmalloc::CollectedProfile;
using tcmalloc::Describe;
using tcmalloc::Handle;
using tcmalloc::Of;
using tcmalloc::ProfileKind;

#pragma GCC visibility push(default)
extern "C" {

int64_t tcmalloc_get_sample_period() {
  return static_cast<int64_t>(tcmalloc::heap.sample_period());
}

void tcmalloc_set_sample_period(int64_t bytes) {
  tcmalloc::heap.sample_period() = bytes > 0 ? static_cast<uint64_t>(bytes) : 0;
}

int64_t tcmalloc_get_guarded_sampling_interval() { return tcmalloc::guarded_blocks.interval(); }

void tcmalloc_set_guarded_sampling_interval(int64_t bytes) {
  tcmalloc::guarded_blocks.set_interval(bytes);
}

void tcmalloc_activate_guarded_sampling() { tcmalloc::guarded_blocks.Activate(); }

tcmalloc_profile* tcmalloc_profile_take(int kind) {
  return Handle(CollectedProfile::Take(static_cast<ProfileKind>(kind)));
}

tcmalloc_profile* tcmalloc_profile_begin(int kind) {
  return Handle(CollectedProfile::Begin(static_cast<ProfileKind>(kind)));
}

void tcmalloc_profile_end(tcmalloc_profile* profile) { Of(profile)->End(); }

void tcmalloc_profile_delete(tcmalloc_profile* profile) { Of(profile)->Delete(); }

void tcmalloc_profile_times(const tcmalloc_profile* profile, int64_t* begin_ns,
                            int64_t* duration_ns) {
  *begin_ns = Of(profile)->wall_begin_ns;
  *duration_ns = Of(profile)->end_ns - Of(profile)->begin_ns;
}

void tcmalloc_profile_iterate(const tcmalloc_profile* profile, tcmalloc_profile_visitor visit,
                              void* argument) {
  const tcmalloc::StackTable::Reader reader(tcmalloc::stack_table);
  tcmalloc::WholeBlocks blocks;
  const bool fragmentation = Of(profile)->kind == ProfileKind::kFragmentation;
  for (const tcmalloc::ProfileRow& row : Of(profile)->rows.rows()) {
    if (fragmentation && row.pinned == 0) continue;
    const int64_t count = blocks.Round(row.sample.weight);
    tcmalloc_profile_sample sample = Describe(*Of(profile), row, count);
    if (row.sample.stack != 0) {
      const auto frames = reader.frames(row.sample.stack);
      sample.depth = static_cast<int>(frames.size());
      sample.stack = reinterpret_cast<void* const*>(frames.data());
    }
    visit(&sample, argument);
  }
}

bool tcmalloc_profile_marshal(const tcmalloc_profile* profile, tcmalloc_profile_writer write,
                              void* argument) {
  tcmalloc::CallbackSink sink(write, argument);
  return WriteProto(*Of(profile), sink);
}

bool tcmalloc_write_heap_profile(const char* path) { return tcmalloc::WriteHeapProfileFile(path); }

bool tcmalloc_add_sampled_hook(bool of_frees, tcmalloc_sampled_hook hook) {
  return tcmalloc::profiles.hooks.list(of_frees).Add(hook);
}

bool tcmalloc_remove_sampled_hook(bool of_frees, tcmalloc_sampled_hook hook) {
  return tcmalloc::profiles.hooks.list(of_frees).Remove(hook);
}

void tcmalloc_invoke_sampled_hooks(bool of_frees, const tcmalloc::SampledAllocation* sample) {
  tcmalloc::Invoke<tcmalloc_sampled_hook, const tcmalloc::SampledAllocation&>(
      tcmalloc::profiles.hooks.list(of_frees), *sample);
}

}  // extern "C"
#pragma GCC visibility pop
