// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/range_snapshot.h"

#include <sys/mman.h>

#include <algorithm>

#include "allocator/slow_path.h"
#include "heap/heap.h"
#include "pages/span.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

using base::MallocRange;

// Returns the fraction for a span of small objects. Its count may change meanwhile, because the
// central list's lock guards it.
double FractionInUse(const Span& span) {
  const uint32_t objects = span.allocated;
  return static_cast<double>(objects) * kSizeClasses[span.size_class].size /
         static_cast<double>(span.bytes());
}

MallocRange RangeOf(const Span& span) {
  MallocRange range = {span.first.address(), span.bytes(), MallocRange::FREE, 0};
  const Span::State state = span.state;
  if (state == Span::State::kReturned) range.type = MallocRange::UNMAPPED;
  if (!span.in_use()) return range;
  range.type = MallocRange::INUSE;
  range.fraction = state == Span::State::kLarge ? 1 : FractionInUse(span);
  return range;
}

}  // namespace

RangeSnapshot::RangeSnapshot() {
  // Other threads may add ranges between counting and copying.
  constexpr int kTries = 8;
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return;
  for (int i = 0; i < kTries; ++i) {
    size_t count = 0;
    heap.page_heap().ForEachSpan([&](const Span&) { ++count; });
    if (!Reserve(count) || Fill()) break;
  }
  std::sort(ranges_, ranges_ + count_,
            [](const MallocRange& a, const MallocRange& b) { return a.address < b.address; });
}

RangeSnapshot::~RangeSnapshot() { Free(); }

bool RangeSnapshot::Reserve(size_t count) {
  Free();
  const size_t capacity = count + count / 8 + 64;
  // Populated, so that no page fault prolongs the hold of the heap's lock.
  void* memory = system_calls.mmap(nullptr, capacity * sizeof(MallocRange), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (memory == MAP_FAILED) return false;
  ranges_ = static_cast<MallocRange*>(memory);
  capacity_ = capacity;
  return true;
}

void RangeSnapshot::Free() {
  if (ranges_ != nullptr) system_calls.munmap(ranges_, capacity_ * sizeof(MallocRange));
  ranges_ = nullptr;
  capacity_ = 0;
  count_ = 0;
}

bool RangeSnapshot::Fill() {
  bool complete = true;
  heap.page_heap().ForEachSpan([&](const Span& span) {
    if (span.state == Span::State::kUnused) return;
    complete = count_ < capacity_;
    if (complete) ranges_[count_++] = RangeOf(span);
  });
  return complete;
}

}  // namespace tcmalloc
