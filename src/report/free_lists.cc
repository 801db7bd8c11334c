// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "report/free_lists.h"

#include <cstddef>
#include <cstdint>

#include "allocator/slow_path.h"
#include "heap/heap.h"
#include "page_heap/free_runs.h"
#include "pages/page_types.h"
#include "report/current_statistics.h"
#include "report/report_snapshot.h"
#include "size_class/size_classes.h"
#include "system/weak_cxx_symbols.h"

namespace tcmalloc {
namespace {

using FreeListInfo = MallocExtension::FreeListInfo;

constexpr size_t kMostLists = 3 * (kSizeClassCount - 1) + 2 * FreeRunCounts::kListed + 2;

// Allocates nothing, because kMostLists entries are reserved.
void AppendSizeClass(uint8_t c, const SizeClassStatistics& of, std::vector<FreeListInfo>* lists) {
  const size_t least = LeastRequest(c);
  const auto append = [&](const char* type, size_t objects) {
    lists->push_back({least, of.object_bytes, objects * of.object_bytes, type});
  };
  append("tcmalloc.central", of.central_free);
  append("tcmalloc.transfer", of.transfer_free);
  append("tcmalloc.thread", of.thread_free + of.cpu_free);
}

void AppendPages(const FreeRunCounts& pages, std::vector<FreeListInfo>* lists) {
  for (size_t i = 1; i <= FreeRunCounts::kListed; ++i) {
    const FreeRuns& runs = pages.of_length[i];
    const size_t least = Length(i - 1).bytes();
    const size_t most = Length(i).bytes();
    lists->push_back({least, most, runs.with_memory.bytes(), "tcmalloc.page"});
    lists->push_back({least, most, runs.without.bytes(), "tcmalloc.page_unmapped"});
  }
  constexpr size_t kLeast = Length(FreeRunCounts::kListed).bytes();
  const FreeRuns& longer = pages.longer;
  lists->push_back({kLeast, SIZE_MAX, longer.with_memory.bytes(), "tcmalloc.large"});
  lists->push_back({kLeast, SIZE_MAX, longer.without.bytes(), "tcmalloc.large_unmapped"});
}

}  // namespace

void ListFreeLists(std::vector<FreeListInfo>* lists) {
  lists->clear();
  lists->reserve(kMostLists);
  SlowPath slow_path(SlowPath::Patient{});
  if (slow_path.reentrant()) return;
  const ReportDetailsHolder holder(Detail::kAll);
  ReportDetails* details = holder.get();
  if (details == nullptr) return;
  CurrentStatistics(&details->classes);
  for (uint8_t c = 1; c < kSizeClassCount; ++c) AppendSizeClass(c, details->classes[c], lists);
  heap.page_heap().CountFreeRuns(&details->free_runs);
  AppendPages(details->free_runs, lists);
}

}  // namespace tcmalloc
