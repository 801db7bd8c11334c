// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/last_resort.h"

#include <algorithm>

namespace tcmalloc {

bool LastResort::IsPossible(const Request& request, Length most) {
  const PageHeapStats& heap = request.heap;
  const Length gain = std::min(most, heap.in_use());
  if (request.limit != Length(0) && heap.committed() + request.pages > request.limit) {
    return heap.in_use() - gain + request.pages <= request.limit;
  }
  return request.pages <= heap.free + heap.returned + heap.in_transit + gain;
}

bool LastResort::MayHelp(const Request& request, const CachedMemory& cached, int64_t now) const {
  const bool waits = now < pause_end_.load(std::memory_order_relaxed);
  if (cached.objects <= (waits ? left_.load(std::memory_order_relaxed) : 0)) return false;
  return request.pages == Length(0) || IsPossible(request, cached.pages);
}

void LastResort::NoteShed(const CachedMemory& cached, int64_t begin, int64_t end) {
  left_.store(cached.objects, std::memory_order_relaxed);
  const int64_t pause = std::clamp((end - begin) * kCostShare, kLeastPause, kMostPause);
  pause_end_.store(end + pause, std::memory_order_relaxed);
}

}  // namespace tcmalloc
