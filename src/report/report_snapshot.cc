// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/report_snapshot.h"

#include <sys/mman.h>

#include <cerrno>
#include <new>

#include "allocator/slow_path.h"
#include "heap/heap.h"
#include "report/current_statistics.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr HugepageFigure kHugepageFigures[] = {
    {"shared", [](const HugePageStats& s) { return uint64_t{s.shared}; },
     "Hugepages that several spans share."},
    {"gained_bytes", [](const HugePageStats& s) { return uint64_t{s.backed_used.bytes()}; },
     "In use in those that the kernel is believed to back by one page."},
    {"wasted_bytes", [](const HugePageStats& s) { return uint64_t{s.backed_unused.bytes()}; },
     "Not in use in the same."},
    {"collapsed", [](const HugePageStats& s) { return s.collapses; },
     "Made by the kernel of pages in use, on request."},
    {"broken", [](const HugePageStats& s) { return s.broken; }, "Of which a part was given back."},
    {"refusals", [](const HugePageStats& s) { return s.advice_failures + s.collapse_failures; },
     "Requests that the kernel did not follow."},
};

void DescribeFrontEnd(ReportSnapshot* snapshot) {
  const bool per_cpu = heap.front_end().wanted() == FrontEnd::kPerCpu;
  snapshot->front_end = per_cpu ? "per_cpu" : "per_thread";
  heap.front_end().Describe(heap.rseq_support(), snapshot->front_end_reason);
}

void DescribePageHeap(ReportSnapshot* snapshot) {
  snapshot->uses_hugepages = heap.page_heap().kind() == PageHeapKind::kHuge;
  snapshot->page_heap = snapshot->uses_hugepages ? "huge" : "classic";
  const bool by_default = heap.options().page_heap == PageHeapOption::kAuto;
  snapshot->page_heap_reason = by_default ? "the default" : "chosen by TCMALLOC_PAGE_HEAP";
  if (snapshot->uses_hugepages) snapshot->hugepages = heap.page_heap().huge_stats();
}

}  // namespace

ReportDetailsHolder::ReportDetailsHolder(Detail detail) {
  if (detail != Detail::kAll) return;
  const int saved_errno = errno;
  void* memory = system_calls.mmap(nullptr, sizeof(ReportDetails), PROT_READ | PROT_WRITE,
                                   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory != MAP_FAILED) details_ = new (memory) ReportDetails;
  errno = saved_errno;
}

ReportDetailsHolder::~ReportDetailsHolder() {
  if (details_ != nullptr) system_calls.munmap(details_, sizeof(ReportDetails));
}

bool TakeSnapshot(ReportSnapshot* snapshot) {
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return false;
  ReportDetails* details = snapshot->holder.get();
  snapshot->statistics = CurrentStatistics(details != nullptr ? &details->classes : nullptr);
  if (details != nullptr) heap.page_heap().CountFreeRuns(&details->free_runs);
  DescribeFrontEnd(snapshot);
  DescribePageHeap(snapshot);
  return true;
}

std::span<const HugepageFigure> HugepageFigures() { return kHugepageFigures; }

}  // namespace tcmalloc
