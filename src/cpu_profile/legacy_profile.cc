// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/legacy_profile.h"

#include <string_view>

#include "profile_format/mappings.h"

namespace tcmalloc {

void LegacyWriter::Flush() {
  out_.Write({reinterpret_cast<const char*>(words_), used_ * sizeof(words_[0])});
  used_ = 0;
}

void LegacyWriter::Put(uintptr_t word) {
  if (used_ == kBufferWords) Flush();
  words_[used_++] = word;
}

void LegacyWriter::Begin(uint64_t period_us) {
  for (const uint64_t word : {uint64_t{0}, uint64_t{3}, uint64_t{0}, period_us, uint64_t{0}}) {
    Put(word);
  }
}

void LegacyWriter::Add(std::span<const uintptr_t> stack, uint64_t count) {
  if (stack.empty() || count == 0) return;
  Put(count);
  Put(stack.size());
  for (const uintptr_t frame : stack) Put(frame);
}

void LegacyWriter::End() {
  for (const uint64_t word : {0, 1, 0}) Put(word);
  Flush();
  CopyOwnMaps(out_);
}

void WriteLegacyProfile(ByteSink& out, uint64_t period_us, const StackCounts& counts) {
  LegacyWriter writer(out);
  writer.Begin(period_us);
  counts.ForEach(
      [&writer](std::span<const uintptr_t> stack, uint64_t count) { writer.Add(stack, count); });
  writer.End();
}

}  // namespace tcmalloc
