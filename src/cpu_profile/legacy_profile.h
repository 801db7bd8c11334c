// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes CPU profiles in the binary format of gperftools.

#ifndef TCMALLOC_CPU_PROFILE_LEGACY_PROFILE_H_
#define TCMALLOC_CPU_PROFILE_LEGACY_PROFILE_H_

#include <cstdint>
#include <span>

#include "cpu_profile/stack_counts.h"
#include "profile_format/byte_sink.h"

namespace tcmalloc {

// Writes the parts of a profile in machine words: Begin, a record for each stack, and End, which
// also appends /proc/self/maps. A record is a count, a depth, and the addresses from the innermost
// on. Allocates nothing.
class LegacyWriter {
 public:
  // Writes to `out`, which outlives the writer.
  explicit LegacyWriter(ByteSink& out) : out_(out) {}

  // Writes the header: 0, 3 (words that follow), 0 (the version), the period, 0.
  void Begin(uint64_t period_us);
  void Add(std::span<const uintptr_t> stack, uint64_t count);
  // Writes the trailer, a record of no samples with the stack {0}, and the mappings.
  void End();
  // Hands on what was buffered.
  void Flush();

 private:
  void Put(uintptr_t word);

  static constexpr size_t kBufferWords = 512;

  ByteSink& out_;
  uintptr_t words_[kBufferWords];
  size_t used_ = 0;
};

// Writes a whole profile.
void WriteLegacyProfile(ByteSink& out, uint64_t period_us, const StackCounts& counts);

}  // namespace tcmalloc

#endif  // TCMALLOC_CPU_PROFILE_LEGACY_PROFILE_H_
