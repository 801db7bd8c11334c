// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "upkeep/limits.h"

#include <algorithm>
#include <optional>

namespace tcmalloc {
namespace {

// Returns a limit of whole pages; UINT64_MAX for more than any heap can have.
uint64_t RoundedToPages(uint64_t bytes) {
  constexpr uint64_t kMost = uint64_t{1} << kAddressBits;
  return bytes > kMost ? UINT64_MAX : Length::FromBytesCeil(bytes).bytes();
}

void Add(std::atomic<uint64_t>& sum, uint64_t n) { sum.fetch_add(n, std::memory_order_relaxed); }

}  // namespace

void Limits::Configure(const Config& config) {
  SpinLockHolder holder(lock_);
  if (config.soft_limit != 0) wanted_ = RoundedToPages(config.soft_limit);
  follow_cgroup_ = config.follow_cgroup;
  cgroup_.set_root(config.cgroup_root);
  SetSoftLimit(wanted_);
  Length first = soft_limit();
  if (follow_cgroup_) first = ShorterOf(first, kFirstLook);
  watched_pages_.store(first.pages(), std::memory_order_relaxed);
  refresh_pages_.store(first.pages(), std::memory_order_relaxed);
}

void Limits::SetSoftLimit(uint64_t bytes) {
  const Length limit = bytes == UINT64_MAX ? Length::Max() : Length(bytes >> kPageShift);
  soft_pages_.store(limit.pages(), std::memory_order_relaxed);
}

void Limits::SetWantedSoftLimit(uint64_t bytes, Length committed) {
  wanted_ = std::max(RoundedToPages(bytes), uint64_t{kPageSize});
  SetSoftLimit(std::min(wanted_, DerivedLimit(committed)));
  pause_ = 0;
  next_shed_ = 0;
  watched_pages_.store(0, std::memory_order_relaxed);
}

// Underestimates the resident memory outside the heap if the heap has committed memory that was
// never touched.
uint64_t Limits::DerivedLimit(Length committed) {
  uint64_t limit = cgroup_limits_.memory_high;
  if (cgroup_limits_.memory_max != kNoMemoryLimit) {
    limit = std::min(limit, cgroup_limits_.memory_max - cgroup_limits_.memory_max / 10);
  }
  if (limit == kNoMemoryLimit) return UINT64_MAX;
  resident_ = cgroup_.ReadResidentBytes().value_or(resident_);
  const uint64_t outside = resident_ - std::min(resident_, uint64_t{committed.bytes()});
  return limit - std::min(outside, limit - limit / 8);
}

bool Limits::Refresh(int64_t now, Length committed, Reader reader) {
  if (!RefreshIsDue(now, committed, reader)) return false;
  if (const std::optional<CgroupLimits> limits = cgroup_.Read()) {
    cgroup_limits_ = *limits;
    pressure_is_new_ = limits->pressure >= kHighPressure;
    SetSoftLimit(std::min(wanted_, DerivedLimit(committed)));
  }
  PlanRefresh(now, committed);
  return true;
}

void Limits::PlanRefresh(int64_t now, Length committed) {
  const Length limit = soft_limit();
  const Length way = std::min(limit - std::min(committed, limit), committed);
  const Length growth = LongerOf(Length(way.pages() / kGrowthShare), kLeastGrowth);
  next_refresh_.store(now + kRefreshInterval, std::memory_order_relaxed);
  seldom_refresh_.store(now + kSeldom, std::memory_order_relaxed);
  refresh_pages_.store((committed + growth).pages(), std::memory_order_relaxed);
}

// Sheds more than the excess, which leaves room to grow before the next shed.
Length Limits::ToShed(int64_t now, Length committed) {
  if (now < next_shed_) return Length(0);
  const Length limit = soft_limit();
  shed_for_limit_ = committed > limit;
  if (shed_for_limit_) {
    Add(soft_hits_, 1);
    return committed - limit + std::max(Length(limit.pages() / kStepShare), Length(1));
  }
  if (!pressure_is_new_) return Length(0);
  pressure_is_new_ = false;
  Add(pressure_hits_, 1);
  return Length::Max();
}

void Limits::NoteSoftShed(const ShedBytes& shed, int64_t begin, int64_t end, Length committed) {
  NoteShed(shed);
  const bool within = committed <= soft_limit();
  if (within && shed_for_limit_) Add(soft_shrinks_, 1);
  const int64_t longer = within ? 0 : 2 * pause_;
  pause_ = std::clamp(std::max((end - begin) * kCostShare, longer), kLeastPause, kMostPause);
  next_shed_ = end + pause_;
}

void Limits::NoteShed(const ShedBytes& shed) {
  Add(shed_caches_, shed.caches);
  Add(shed_transfer_, shed.transfer);
}

void Limits::ScheduleNextCheck(Length committed, uint64_t spans_served) {
  const Length limit = soft_limit();
  Length next = committed + LongerOf(kLeastStep, Length(committed.pages() / kStepShare));
  if (committed < limit) next = std::min(next, limit);
  watched_pages_.store(next.pages(), std::memory_order_relaxed);
  watched_spans_.store(spans_served + kSpansBetweenLooks, std::memory_order_relaxed);
}

LimitStats Limits::stats() {
  LimitStats stats;
  const Length limit = soft_limit();
  if (limit != Length::Max()) stats.soft_limit = limit.bytes();
  stats.soft_hits = soft_hits_.load(std::memory_order_relaxed);
  stats.soft_shrinks = soft_shrinks_.load(std::memory_order_relaxed);
  stats.pressure_hits = pressure_hits_.load(std::memory_order_relaxed);
  stats.shed_caches = shed_caches_.load(std::memory_order_relaxed);
  stats.shed_transfer = shed_transfer_.load(std::memory_order_relaxed);
  SpinLockHolder holder(lock_);
  stats.cgroup = cgroup_limits_;
  return stats;
}

}  // namespace tcmalloc
