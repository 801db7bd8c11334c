// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/front_end.h"

#include <cerrno>

namespace tcmalloc {

bool FrontEndChoice::ShouldUsePerCpu(int threads) {
  if (option_ != FrontEndOption::kAuto) return option_ == FrontEndOption::kPerCpu;
  if (threads <= kManyThreads) return false;
  int many = many_threads_.load(std::memory_order_relaxed);
  if (many == 0) {
    const int saved_errno = errno;
    many = kManyThreads * usable_cpus_();
    errno = saved_errno;
    many_threads_.store(many, std::memory_order_relaxed);
  }
  return threads > many;
}

bool FrontEndChoice::NoteEnd() {
  return SwitchBackIfFew(threads_.fetch_sub(1, std::memory_order_relaxed) - 1);
}

bool FrontEndChoice::SwitchBackIfFew(int threads) {
  if (option_ != FrontEndOption::kAuto || wanted() != FrontEnd::kPerCpu) return false;
  if (threads > many_threads_.load(std::memory_order_relaxed) / 2) return false;
  return wanted_.exchange(FrontEnd::kPerThread, std::memory_order_relaxed) == FrontEnd::kPerCpu;
}

void FrontEndChoice::ResetAfterFork(int threads) {
  State trying = State::kTrying;
  state_.compare_exchange_strong(trying, State::kUntried, std::memory_order_relaxed);
  if (threads_.exchange(threads, std::memory_order_relaxed) > threads) {
    has_lost_threads_.store(true, std::memory_order_relaxed);
  }
  // The result does not matter, because the caches of CPUs are empty in the child.
  static_cast<void>(SwitchBackIfFew(threads));
}

void FrontEndChoice::Describe(const RseqSupport& support, Message& message) const {
  const bool per_cpu = wanted() == FrontEnd::kPerCpu;
  message << (per_cpu ? "per CPU" : "per thread");
  if (option_ == FrontEndOption::kAuto) message << ", chosen by the number of threads";
  // Acquire pairs with the release in NoteStart and publishes `support`.
  switch (state_.load(std::memory_order_acquire)) {
    case State::kStarted:
      message << "; CPUs by " << (support.ids == CpuIds::kMmCid ? "mm_cid" : "cpu_id");
      if (!support.has_mm_cid) message << ", for the kernel has no mm_cid";
      if (support.own_registration) message << ", own registration of rseq";
      return;
    case State::kUnavailable:
      message << "; not per CPU: ";
      message << (support.state == RseqState::kUsable ? "no memory for the caches"
                                                      : RseqStateName(support.state));
      return;
    default:
      return;
  }
}

}  // namespace tcmalloc
