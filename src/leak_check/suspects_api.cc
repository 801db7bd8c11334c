// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The function of tcmalloc/leak_suspects.h.

#define TCMALLOC_OPTIONAL
#include <tcmalloc/internal_malloc_extension.h>

#include <algorithm>
#include <iterator>

#include "allocator/slow_path.h"
#include "base/attributes.h"
#include "heap_profile/early_stacks.h"
#include "heap_profile/profiles.h"
#include "heap_profile/suspects.h"
#include "profile_format/scratch.h"
#include "system/clock.h"

namespace tcmalloc {
namespace {

size_t CopySamples(const StackTable::Reader& stacks, const Scratch<AgedSample>& samples) {
  size_t count = 0;
  sample_table.ForEach([&](const Sample& sample) {
    if (count == samples.size()) return;
    samples[count++] = {.stack = sample.stack == 0 ? 0 : stacks.FirstEqual(sample.stack),
                        .time_ns = sample.time_ns,
                        .blocks = sample.weight,
                        .bytes = sample.weight * static_cast<double>(sample.allocated)};
  });
  return count;
}

void CopySuspect(const Suspect& from, const StackTable::Reader& stacks, tcmalloc_leak_suspect* to) {
  to->samples = from.samples;
  to->blocks = from.blocks;
  to->bytes = from.bytes;
  to->bytes_per_minute = from.bytes_per_minute;
  to->oldest_ns = from.oldest_ns;
  to->confidence = from.confidence;
  const std::span<const uintptr_t> frames = stacks.frames(from.stack);
  const size_t depth = std::min(frames.size(), std::size(to->stack));
  for (size_t i = 0; i < depth; ++i) to->stack[i] = reinterpret_cast<void*>(frames[i]);
  to->depth = static_cast<int>(depth);
}

}  // namespace
}  // namespace tcmalloc

extern "C" TCMALLOC_EXPORT size_t tcmalloc_find_leak_suspects(tcmalloc_leak_suspect* suspects,
                                                              size_t most) {
  using namespace tcmalloc;
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant() || most == 0) return 0;
  constexpr size_t kMayCome = 1024;
  const Scratch<AgedSample> samples(sample_table.stats().samples + kMayCome);
  // A suspect has several samples.
  const Scratch<Suspect> found(std::min(most, samples.size()));
  if (samples.data() == nullptr || found.data() == nullptr) return 0;
  early_stacks.WalkAll(stack_table);
  const StackTable::Reader stacks(stack_table);
  const size_t count = FindSuspects(samples.data(), CopySamples(stacks, samples), WatchedSince(),
                                    MonotonicNanoseconds(), found.data(), found.size());
  for (size_t i = 0; i < count; ++i) CopySuspect(found[i], stacks, &suspects[i]);
  return count;
}
