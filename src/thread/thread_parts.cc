// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/thread_parts.h"

#include <bit>

#include "thread/thread_state.h"

namespace tcmalloc {
namespace {

uint32_t BitOf(uint8_t number) { return uint32_t{1} << (number - 1); }

}  // namespace

constinit ThreadParts thread_parts;

uint8_t ThreadParts::Take() {
  for (;;) {
    const int taken = std::countr_one(taken_.load(std::memory_order_relaxed));
    if (taken >= kCount) return 0;
    const auto number = static_cast<uint8_t>(taken + 1);
    if (!TryTake(number)) continue;
    used_.fetch_or(BitOf(number), std::memory_order_relaxed);
    uint8_t highest = highest_.load(std::memory_order_relaxed);
    while (highest < number &&
           !highest_.compare_exchange_weak(highest, number, std::memory_order_relaxed)) {
    }
    return number;
  }
}

bool ThreadParts::TryTake(uint8_t number) {
  // Acquire pairs with the release in Return: the part is as it was left.
  const uint32_t before = taken_.fetch_or(BitOf(number), std::memory_order_acquire);
  return (before & BitOf(number)) == 0;
}

bool ThreadParts::TryTakeLeft(uint8_t number) {
  if ((used_.load(std::memory_order_relaxed) & BitOf(number)) == 0 || !TryTake(number)) {
    return false;
  }
  used_.fetch_and(~BitOf(number), std::memory_order_relaxed);
  return true;
}

void ThreadParts::Return(uint8_t number) {
  // Release pairs with the acquire in TryTake.
  taken_.fetch_and(~BitOf(number), std::memory_order_release);
}

void ThreadParts::ReturnOwn() {
  const uint8_t number = thread_state.quarantine_part;
  if (!IsPart(number)) return;
  thread_state.quarantine_part = 0;
  // Pairs with BelowChecks in a signal handler, which finds no part before another thread may take
  // this one.
  std::atomic_signal_fence(std::memory_order_seq_cst);
  Return(number);
}

}  // namespace tcmalloc
