// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/suspects.h"

#include <algorithm>
#include <iterator>

#include "system/clock.h"

namespace tcmalloc {
namespace {

constinit int64_t watched_since_ns = 0;

__attribute__((constructor)) void NoteStart() { watched_since_ns = MonotonicNanoseconds(); }

constexpr size_t kLeastSamples = 8;
constexpr int kParts = 8;

// The samples of one stack by the part of the time in which they were allocated.
struct Histogram {
  uint64_t total = 0;
  uint64_t parts[kParts] = {};

  uint64_t Sum(int from, int to) const {
    uint64_t sum = 0;
    for (int i = from; i < to; ++i) sum += parts[i];
    return sum;
  }
};

int PartOf(int64_t time_ns, int64_t begin_ns, int64_t now_ns) {
  const double share =
      static_cast<double>(time_ns - begin_ns) / static_cast<double>(now_ns - begin_ns);
  return std::clamp(static_cast<int>(share * kParts), 0, kParts - 1);
}

// A cache that is full has no young samples, one that drops the oldest no old ones, and one that
// drops any has ever fewer the older they are. Twice the standard deviation of the difference of
// the halves is allowed for chance.
bool Grows(const Histogram& histogram) {
  if (histogram.total < kLeastSamples) return false;
  for (int quarter = 0; quarter < kParts; quarter += kParts / 4) {
    if (histogram.Sum(quarter, quarter + kParts / 4) * 12 < histogram.total) return false;
  }
  if (histogram.parts[kParts - 1] == 0) return false;
  const auto older = static_cast<double>(histogram.Sum(0, kParts / 2));
  const auto newer = static_cast<double>(histogram.Sum(kParts / 2, kParts));
  const double lacking = newer - older;
  return lacking <= 0 || lacking * lacking <= 4 * static_cast<double>(histogram.total);
}

double ConfidenceOf(const Histogram& histogram) {
  const auto total = static_cast<double>(histogram.total);
  const auto older = static_cast<double>(histogram.Sum(0, kParts / 2));
  const double even = 1 - std::max(total - 2 * older, 2 * older - total) / total;
  return total / (total + kLeastSamples) * std::max(even, 0.0);
}

}  // namespace

int64_t WatchedSince() { return watched_since_ns; }

size_t FindSuspects(AgedSample* samples, size_t count, int64_t begin_ns, int64_t now_ns,
                    Suspect* suspects, size_t most) {
  if (now_ns <= begin_ns) return 0;
  std::sort(samples, samples + count,
            [](const AgedSample& a, const AgedSample& b) { return a.stack < b.stack; });
  size_t found = 0;
  for (size_t first = 0; first < count && found < most;) {
    Histogram histogram;
    Suspect suspect = {.stack = samples[first].stack};
    for (; first < count && samples[first].stack == suspect.stack; ++first) {
      const AgedSample& sample = samples[first];
      histogram.total += 1;
      histogram.parts[PartOf(sample.time_ns, begin_ns, now_ns)] += 1;
      suspect.blocks += sample.blocks;
      suspect.bytes += sample.bytes;
      suspect.oldest_ns = std::max(suspect.oldest_ns, now_ns - sample.time_ns);
    }
    if (suspect.stack == 0 || !Grows(histogram)) continue;
    constexpr double kMinute = 60e9;
    suspect.samples = histogram.total;
    suspect.bytes_per_minute = suspect.bytes / static_cast<double>(now_ns - begin_ns) * kMinute;
    suspect.confidence = ConfidenceOf(histogram);
    suspects[found++] = suspect;
  }
  std::sort(suspects, suspects + found, [](const Suspect& a, const Suspect& b) {
    return a.bytes_per_minute > b.bytes_per_minute;
  });
  return found;
}

}  // namespace tcmalloc
