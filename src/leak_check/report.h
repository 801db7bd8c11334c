// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells what a check has found.

#ifndef TCMALLOC_LEAK_CHECK_REPORT_H_
#define TCMALLOC_LEAK_CHECK_REPORT_H_

#include <string_view>

#include "leak_check/snapshot.h"
#include "options/options.h"
#include "profile_format/mappings.h"
#include "recorder/profile_name.h"

namespace tcmalloc {

// One check and its result.
struct CheckReport {
  std::string_view name;
  const SnapshotResult& result;
  const BlockSource& blocks;
  const Options& options;
};

// Prints the lost blocks by stacks to stderr, and names the profiles that were written. `mappings`
// are those of the process.
void PrintLeaks(const CheckReport& report, const Mappings& mappings, std::string_view profile_path);
// Prints that nothing is lost.
void PrintNoLeaks(const CheckReport& report);
// Says why there was no check.
void PrintFailure(std::string_view name, SnapshotOutcome outcome);

// Writes profiles of the lost blocks: the text of gperftools to `path`, and profile.proto to `path`
// with .pb.gz behind it. `mappings` are those of `maps`. Returns false if one was not written.
bool WriteLeakProfiles(const CheckReport& report, const MapsText& maps, const Mappings& mappings,
                       const ProfileName& path);

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_REPORT_H_
