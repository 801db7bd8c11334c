// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/exit_profiles.h"

#include <unistd.h>

#include <bit>

#include "heap/observer.h"
#include "heap_profile/collected_profile.h"
#include "heap_profile/profile_path.h"
#include "heap_profile/profile_writer.h"
#include "options/option_table.h"

namespace tcmalloc {
namespace {

// In which the heap was made.
constinit pid_t first_process = 0;
// Of the whole run; null if they are not wanted.
constinit CollectedProfile* allocations = nullptr;
constinit CollectedProfile* lifetimes = nullptr;

bool Wants(const Options& options, ProfileTypeOption type) {
  return !options.heap_profile.empty() && (options.profile_types & SetOf(type)) != 0;
}

// Returns null if there is none. The caller deletes it.
CollectedProfile* Collect(ProfileTypeOption type) {
  switch (type) {
    case ProfileTypeOption::kPeak:
      return CollectedProfile::Take(ProfileKind::kPeakHeap);
    case ProfileTypeOption::kFragmentation:
      return CollectedProfile::Take(ProfileKind::kFragmentation);
    case ProfileTypeOption::kAllocations:
      return allocations;
    case ProfileTypeOption::kLifetimes:
      return lifetimes;
    default:
      return nullptr;
  }
}

void WriteProfile(ProfileTypeOption type, const char* path) {
  if (type == ProfileTypeOption::kHeap) {
    WriteHeapProfileFile(path);
  } else if (type == ProfileTypeOption::kGrowth) {
    WriteGrowthProfileFile(path);
  } else if (CollectedProfile* profile = Collect(type)) {
    profile->End();
    WriteProfileFile(*profile, path);
    profile->Delete();
  }
}

}  // namespace

void BeginExitProfiles(const Options& options) {
  first_process = getpid();
  const uint64_t period = options.sample_parameter;
  if (Wants(options, ProfileTypeOption::kAllocations)) {
    allocations = CollectedProfile::BeginWithHeap(ProfileKind::kAllocations, period);
  }
  if (Wants(options, ProfileTypeOption::kLifetimes)) {
    lifetimes = CollectedProfile::BeginWithHeap(ProfileKind::kLifetimes, period);
  }
}

// A child of fork runs the exit handlers of its parent, whose file it must not replace.
void WriteExitProfiles() {
  const Options& options = heap.options();
  if (options.heap_profile.empty()) return;
  const char* pattern = options.heap_profile.text;
  if (getpid() != first_process && !HasPlaceholder(pattern, 'p')) return;
  const bool several = std::popcount(options.profile_types) > 1;
  for (size_t i = 0; i < std::size(kProfileTypes); ++i) {
    const auto type = static_cast<ProfileTypeOption>(i);
    if (!Wants(options, type)) continue;
    const ProfilePath path(pattern, {.type = kProfileTypes[i], .typed = several});
    WriteProfile(type, path.text());
  }
}

}  // namespace tcmalloc
