// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/cache_budget.h"

#include <algorithm>

namespace tcmalloc {
namespace {

void Add(BudgetShare& share, int64_t bytes) {
  share.bytes.fetch_add(bytes, std::memory_order_relaxed);
}

}  // namespace

void CacheBudget::SetTotal(size_t bytes) {
  SpinLockHolder holder(lock_);
  const auto total = static_cast<int64_t>(bytes);
  unclaimed_ += total - total_;
  total_ = total;
  most_long_bytes_.store(total / kLongPart, std::memory_order_relaxed);
  CutShares(SIZE_MAX);
}

size_t CacheBudget::total() {
  SpinLockHolder holder(lock_);
  return static_cast<size_t>(total_);
}

void CacheBudget::SetFirstShare(size_t bytes) {
  SpinLockHolder holder(lock_);
  const auto most = static_cast<size_t>(std::max(total_, kLeastShare));
  first_share_ = std::max(static_cast<int64_t>(std::min(bytes, most)), kLeastShare);
  CutShares(SIZE_MAX);
}

size_t CacheBudget::first_share() {
  SpinLockHolder holder(lock_);
  return static_cast<size_t>(first_share_);
}

void CacheBudget::Join(BudgetShare& share) {
  SpinLockHolder holder(lock_);
  share.bytes.store(first_share_, std::memory_order_relaxed);
  unclaimed_ -= first_share_;
  CutShares(kMaxVictims);
  shares_.PushBack(&share);
}

void CacheBudget::Leave(BudgetShare& share) {
  SpinLockHolder holder(lock_);
  if (!share.linked()) return;
  unclaimed_ += share.limit();
  Remove(share);
}

void CacheBudget::Remove(BudgetShare& share) {
  if (next_victim_ == &share) next_victim_ = shares_.next(&share);
  shares_.Remove(&share);
}

bool CacheBudget::SetAside(BudgetShare& share, int64_t held) {
  SpinLockHolder holder(lock_);
  const int64_t kept = std::min(std::max(held, first_share_), share.limit());
  if (!share.linked() || held > kept || aside_ + kept > total_ / kAsidePart) return false;
  Remove(share);
  unclaimed_ += share.limit() - kept;
  share.bytes.store(kept, std::memory_order_relaxed);
  aside_ += kept;
  return true;
}

void CacheBudget::TakeUp(BudgetShare& share) {
  SpinLockHolder holder(lock_);
  aside_ -= share.limit();
  shares_.PushBack(&share);
}

void CacheBudget::KeepOnly(BudgetShare* mine) {
  SpinLockHolder holder(lock_);
  const bool keep = mine != nullptr && mine->linked();
  shares_.Abandon();
  next_victim_ = nullptr;
  unclaimed_ = total_;
  aside_ = 0;
  long_bytes_.store(keep ? mine->long_bytes : 0, std::memory_order_relaxed);
  if (!keep) return;
  static_cast<ListNode&>(*mine) = {};
  shares_.PushBack(mine);
  unclaimed_ -= mine->limit();
}

// Returns false while the cache pauses, which begins when it meets another one.
bool CacheBudget::TryLockForTheft(BudgetShare& share) {
  if (share.pause > 0) {
    --share.pause;
    return false;
  }
  const bool alone = lock_.TryLock();
  if (!alone) share.pause = kPause;
  return alone;
}

bool CacheBudget::Grow(BudgetShare& share) {
  if (unclaimed_ <= 0) {
    if (!TryLockForTheft(share)) return false;
  } else {
    lock_.Lock();
  }
  const bool grown = unclaimed_ > 0 ? Claim(share) : Steal(share);
  lock_.Unlock();
  return grown;
}

bool CacheBudget::Claim(BudgetShare& share) {
  const int64_t step = std::min<int64_t>(kStep, unclaimed_);
  unclaimed_ -= step;
  Add(share, step);
  return true;
}

BudgetShare* CacheBudget::NextVictim() {
  BudgetShare* victim = next_victim_ != nullptr ? next_victim_ : shares_.front();
  if (victim != nullptr) next_victim_ = shares_.next(victim);
  return victim;
}

void CacheBudget::Cut(BudgetShare& share, int64_t bytes) {
  Add(share, -bytes);
  bytes_cut_ += bytes;
}

void CacheBudget::ForgetCuts() {
  SpinLockHolder holder(lock_);
  bytes_cut_ = 0;
}

void CacheBudget::CutShares(size_t most_victims) {
  const BudgetShare* const first = next_victim_ != nullptr ? next_victim_ : shares_.front();
  for (; unclaimed_ < 0 && most_victims > 0; --most_victims) {
    BudgetShare* victim = NextVictim();
    if (victim == nullptr) return;
    const int64_t cut = std::min(std::max<int64_t>(victim->limit() - first_share_, 0), -unclaimed_);
    Cut(*victim, cut);
    unclaimed_ += cut;
    const BudgetShare* const next = next_victim_ != nullptr ? next_victim_ : shares_.front();
    if (next == first) return;
  }
}

bool CacheBudget::MayBeRobbed(const BudgetShare& share) {
  const int64_t limit = share.limit();
  return limit - kStep >= first_share_ && share.full_bytes <= limit + kMostBeyondShare;
}

bool CacheBudget::Steal(BudgetShare& share) {
  for (size_t i = 0; i < kMaxVictims; ++i) {
    BudgetShare* victim = NextVictim();
    if (victim == &share || !MayBeRobbed(*victim)) continue;
    Cut(*victim, kStep);
    Add(share, kStep);
    return true;
  }
  return false;
}

void CacheBudget::CheckInvariants() {
  SpinLockHolder holder(lock_);
  int64_t sum = 0;
  for (BudgetShare* share = shares_.front(); share != nullptr; share = shares_.next(share)) {
    TCMALLOC_CHECK_LE(kLeastShare, share->limit());
    sum += share->limit();
  }
  TCMALLOC_CHECK_EQ(unclaimed_, total_ - sum - aside_);
}

}  // namespace tcmalloc
