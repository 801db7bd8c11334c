// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page heap beside a model of it: a map of page runs. See replay.h.

#ifndef TCMALLOC_TESTS_MODEL_PAGE_HEAP_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_PAGE_HEAP_MACHINE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <map>
#include <vector>

#include "model/page_heap_placement.h"
#include "model/replay.h"
#include "unit/page_heap/test_heap.h"

namespace tcmalloc::testing {

struct PageHeapConfig {
  const char* name;
  size_t reserved_bytes = kPageSize << 17;
  size_t gap = 0;
  Length growth = Length(1);
  Length limit = Length(0);
  double release_rate = 0;
  bool aggressive_decommit = false;
  bool failures = false;  // whether growth, release and advice fail now and then
  bool limited = false;   // whether the system says that addresses are scarce
  uint64_t half_life_ns = 0;
  // The machine's setting, as far as the heap follows it.
  HugepageMode hugepages = HugepageMode::kNever;
};

// `Heap` is a TestHeapOf, whose placement Placement<Heap> judges.
template <typename Heap>
class PageHeapMachine {
 public:
  // `a` is a number of pages, or of calls that fail; `b` picks a span in use, or is the logarithm
  // of an alignment or a time in nanoseconds. kNewNear asks for pages behind the span that `b`
  // picks.
  enum Op : unsigned {
    kNew,
    kNewAligned,
    kNewNear,
    kDelete,
    kExtend,
    kTruncate,
    kRelease,
    kFailGrowth,
    kFailRelease,
    kPassTime,
    kNewRoomy
  };
  static constexpr const char* kNames[] = {"kNew",         "kNewAligned", "kNewNear", "kDelete",
                                           "kExtend",      "kTruncate",   "kRelease", "kFailGrowth",
                                           "kFailRelease", "kPassTime",   "kNewRoomy"};

  explicit PageHeapMachine(const PageHeapConfig& config)
      : config_(config), heap_(config.reserved_bytes) {
    heap_.system.gap = config.gap;
    heap_.system.limited = config.limited;
    heap_.system.fail_allocate = [this] { return Fails(&growth_failures_); };
    heap_.system.fail_release = [this] { return Fails(&release_failures_); };
    heap_.system.fail_advise = [this](HugeAdvice) { return Fails(&release_failures_); };
    heap_->set_growth(config.growth, config.growth);
    heap_->set_limit(config.limit);
    heap_->set_release_rate(config.release_rate);
    heap_->set_aggressive_decommit(config.aggressive_decommit);
    heap_->set_release_half_life(config.half_life_ns);
    if constexpr (requires { heap_->huge_stats(); }) {
      heap_->set_hugepages({.mode = config.hugepages,
                            .may_stall = true,
                            .max_ptes_none = 511,
                            .hugepage_bytes = kHugePageSize});
    }
  }

  void Do(const Action& action) {
    switch (action.op) {
      case kNew:
        return New(Length(action.a), Length(1));
      case kNewAligned:
        return New(Length(action.a), Length(uintptr_t{1} << action.b));
      case kNewNear:
        return NewNear(Length(action.a), EndOf(action.b));
      case kDelete:
        return WithSpan(action.b, [&](Span* span) { Delete(span); });
      case kExtend:
        return WithSpan(action.b, [&](Span* span) { Extend(span, Length(action.a)); });
      case kTruncate:
        return WithSpan(action.b, [&](Span* span) { Truncate(span, Length(action.a)); });
      case kRelease:
        return Release(Length(action.a));
      case kFailGrowth:
        growth_failures_ = action.a;
        return;
      case kFailRelease:
        release_failures_ = action.a;
        return;
      case kPassTime:
        return PassTime(action.b, Length(action.a));
      case kNewRoomy:
        return NewRoomy(Length(action.a));
    }
  }

  void CheckAll() {
    heap_->CheckInvariants();
    Length in_use;
    for (const auto& [first, run] : runs_) {
      in_use += run.length;
      ASSERT_EQ(run.span->first, first);
      ASSERT_EQ(run.span->length, run.length);
      ASSERT_EQ(heap_.map->FindInUse(run.span->start()), run.span);
      CheckStamps(run);
    }
    const PageHeapStats stats = heap_->stats();
    ASSERT_EQ(stats.in_use(), in_use);
    ASSERT_EQ(stats.in_transit, Length(0));
    if (config_.aggressive_decommit && !config_.failures) {
      ASSERT_EQ(stats.free, Length(0));
    }
    if (config_.limit > Length(0)) {
      ASSERT_LE(stats.committed(), config_.limit);
    }
  }

  void Finish() {
    while (!runs_.empty()) Delete(runs_.begin()->second.span);
    CheckAll();
    growth_failures_ = release_failures_ = 0;
    heap_->ReleaseAtLeast(Length::Max());
    ASSERT_EQ(heap_->stats().returned, heap_->stats().system);
  }

 private:
  using State = Span::State;

  struct Run {
    Span* span;
    Length length;
    char stamp;
  };

  static bool Fails(uint64_t* failures) {
    if (*failures == 0) return false;
    --*failures;
    return true;
  }

  template <typename Function>
  void WithSpan(uint64_t pick, Function function) {
    if (runs_.empty()) return;
    function(std::next(runs_.begin(), static_cast<long>(pick % runs_.size()))->second.span);
  }

  // The most pages side by side that nobody uses.
  Length LongestFreeRun(const std::vector<Span>& spans) const {
    Length longest;
    Length run;
    PageId end;
    for (const Span& span : spans) {
      if (span.first != end || span.in_use()) run = Length(0);
      if (!span.in_use()) run += span.length;
      end = span.end();
      longest = std::max(longest, run);
    }
    return longest;
  }

  void New(Length n, Length alignment) {
    const std::vector<Span> before = heap_.SpansByAddress();
    const PageHeapStats stats = heap_->stats();
    Span* span = heap_->NewAligned(n, alignment);
    if (span == nullptr) {
      CheckFailure(before, n + alignment - Length(1), stats.growth_failures);
      return;
    }
    CheckNew(span, n);
    ASSERT_EQ(span->first.index() % alignment.pages(), 0u);
    if (alignment == Length(1)) {
      const bool offset = heap_->stats().released() > stats.released();
      Placement<Heap>::Check(heap_, before, span, config_.limit > Length(0) || offset);
    }
    Add(span);
  }

  // The end of the span that `pick` picks; a page that is in no span if there is none.
  PageId EndOf(uint64_t pick) {
    PageId end;
    WithSpan(pick, [&](const Span* span) { end = span->end(); });
    return end;
  }

  void NewNear(Length n, PageId near) {
    const std::vector<Span> before = heap_.SpansByAddress();
    const PageHeapStats stats = heap_->stats();
    Span* span = heap_->NewNear(n, near);
    if (span == nullptr) {
      CheckFailure(before, n, stats.growth_failures);
      return;
    }
    CheckNew(span, n);
    // Resident pages come first wherever they are.
    const bool resident = std::any_of(before.begin(), before.end(), [&](const Span& other) {
      return other.state == State::kFree && other.length >= n;
    });
    if (resident && heap_->kind() == PageHeapKind::kClassic) {
      ASSERT_EQ(heap_->stats().committed(), stats.committed());
    }
    Add(span);
  }

  // As for a block that grew.
  void NewRoomy(Length n) {
    const std::vector<Span> before = heap_.SpansByAddress();
    const uint64_t refusals = heap_->stats().growth_failures;
    Span* span = heap_->NewRoomy(n);
    if (span == nullptr) {
      CheckFailure(before, n, refusals);
      return;
    }
    CheckNew(span, n);
    span->grows = true;
    Add(span);
  }

  void CheckNew(const Span* span, Length n) {
    ASSERT_EQ(span->state, State::kLarge);
    ASSERT_EQ(span->length, n);
    CheckIsFree(span->first, span->end());
    if (span->zeroed) {
      ASSERT_TRUE(ReadsAsZero(span));
    }
  }

  void CheckFailure(const std::vector<Span>& before, Length needed, uint64_t refusals) {
    if (config_.limit > Length(0)) return;
    ASSERT_GT(heap_->stats().growth_failures, refusals) << "the system was not asked";
    ASSERT_LT(LongestFreeRun(before), needed) << "there was memory";
  }

  void CheckIsFree(PageId first, PageId end) {
    const auto after = runs_.lower_bound(first);
    if (after != runs_.end()) {
      ASSERT_GE(after->first, end);
    }
    if (after == runs_.begin()) return;
    const auto before = std::prev(after);
    ASSERT_LE(before->first + before->second.length, first);
  }

  void Add(Span* span) {
    const Run run{span, span->length, static_cast<char>(1 + next_stamp_++ % 127)};
    runs_[span->first] = run;
    Stamp(run);
  }

  // One byte in each page shows whether anybody else wrote or released it.
  static void Stamp(const Run& run) {
    for (size_t i = 0; i < run.span->bytes(); i += kPageSize) run.span->start()[i] = run.stamp;
  }
  static void CheckStamps(const Run& run) {
    for (size_t i = 0; i < run.span->bytes(); i += kPageSize) {
      ASSERT_EQ(run.span->start()[i], run.stamp);
    }
  }

  void Delete(Span* span) {
    CheckStamps(runs_[span->first]);
    runs_.erase(span->first);
    heap_->Delete(span);
  }

  void Extend(Span* span, Length n) {
    Run& run = runs_[span->first];
    const std::vector<Span> before = heap_.SpansByAddress();
    Length reach = span->length;
    for (const Span& other : before) {
      if (other.first == span->first + reach && !other.in_use()) reach += other.length;
    }
    const uint64_t growths = heap_->stats().growths;
    const bool extended = heap_->TryExtend(span, n);
    if (config_.limit == Length(0)) {
      const bool grown = heap_->stats().growths > growths;
      ASSERT_TRUE(extended ? reach >= n || grown : reach < n);
    }
    if (extended) span->grows = true;
    ASSERT_EQ(span->length, extended ? std::max(n, run.length) : run.length);
    CheckIsFree(span->first + run.length, span->end());
    run.length = span->length;
    Stamp(run);
  }

  void Truncate(Span* span, Length n) {
    heap_->Truncate(span, n);
    Run& run = runs_[span->first];
    ASSERT_EQ(span->length, std::min(n, run.length));
    run.length = span->length;
  }

  void Release(Length n) {
    const PageHeapStats before = heap_->stats();
    const Length released = heap_->ReleaseAtLeast(n);
    const PageHeapStats after = heap_->stats();
    ASSERT_EQ(after.returned, before.returned + released);
    ASSERT_EQ(after.free + released, before.free);
    if (after.release_failures == before.release_failures) {
      ASSERT_GE(released, std::min(n, before.free));
    }
  }

  void PassTime(uint64_t ns, Length most) {
    now_ns_ += ns;
    const PageHeapStats before = heap_->stats();
    const Length released = heap_->ReleaseUnused(now_ns_, most);
    const PageHeapStats after = heap_->stats();
    ASSERT_LE(released, most);
    ASSERT_EQ(after.in_use(), before.in_use());
    ASSERT_EQ(after.released(), before.released() + released);
    // A hugepage that is made whole is resident.
    if (config_.hugepages == HugepageMode::kNever) {
      ASSERT_EQ(after.returned, before.returned + released);
    }
  }

  const PageHeapConfig config_;
  uint64_t now_ns_ = 1;
  uint64_t growth_failures_ = 0;
  uint64_t release_failures_ = 0;
  Heap heap_;
  std::map<PageId, Run> runs_;
  unsigned next_stamp_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_PAGE_HEAP_MACHINE_H_
