// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cpu_profile/alternate_stacks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "cpu_profile/ticker.h"
#include "cpu_profile/timer_calls.h"
#include "system/signal_mask.h"

namespace tcmalloc {
namespace {

// The kernel gives threads numbers below 2^22.
constexpr uint64_t kThreadBits = (uint64_t{1} << 22) - 1;

constinit AlternateStacks alternate_stacks;

// Returns where a stack for signals begins, null if it is none.
const void* StartOf(const stack_t& stack) {
  return (stack.ss_flags & SS_DISABLE) == 0 ? stack.ss_sp : nullptr;
}

}  // namespace

AlternateStacks::Entry AlternateStacks::EntryOf(pid_t thread, const void* stack) {
  const uint64_t hash = reinterpret_cast<uintptr_t>(stack) * 0x9e3779b97f4a7c15U;
  return {(hash >> 32) % kPlaces, (hash & ~kThreadBits) | static_cast<uint64_t>(thread)};
}

bool AlternateStacks::Change(pid_t thread, const void* before, const void* after) {
  if (before == after) return false;
  if (before != nullptr) {
    const Entry left = EntryOf(thread, before);
    uint64_t held = left.word;
    words_[left.place].compare_exchange_strong(held, 0, std::memory_order_relaxed);
  }
  if (after == nullptr) return false;
  const Entry taken = EntryOf(thread, after);
  const uint64_t held = words_[taken.place].exchange(taken.word, std::memory_order_relaxed);
  // The stack may be in the memory of one whose thread has ended.
  return held != taken.word && (held & ~kThreadBits) == (taken.word & ~kThreadBits) &&
         ThreadExists(static_cast<pid_t>(held & kThreadBits));
}

bool SetAlternateStack(const stack_t& wanted, stack_t* before) noexcept {
  // No tick comes between what the kernel and what the profiler is told.
  const SignalsBlocked blocked;
  if (::syscall(SYS_sigaltstack, &wanted, before) != 0) return false;
  if (alternate_stacks.Change(OwnThread(), StartOf(*before), StartOf(wanted))) {
    ticker.action().AvoidAlternateStacks();
  }
  return true;
}

}  // namespace tcmalloc
