// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/report_stack.h"

#include <signal.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "system/stack_switch.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constexpr size_t kBytes = size_t{128} << 10;

// No memory until it is used.
alignas(64) constinit char report_stack[kBytes];
constinit std::atomic<bool> taken{false};

// Acquire pairs with the release in GiveBack: nothing of an earlier call is on the stack any more.
bool TryTake() { return !taken.exchange(true, std::memory_order_acquire); }
// Release pairs with the acquire in TryTake.
void GiveBack() { taken.store(false, std::memory_order_release); }

}  // namespace

void CallOnReportStack(void (*f)(void* argument), void* argument) {
  if (!TryTake()) return f(argument);
  constexpr uint64_t kAllSignals = ~uint64_t{0};
  uint64_t mask = 0;
  const bool blocked = system_calls.rt_sigprocmask(SIG_BLOCK, &kAllSignals, &mask) == 0;
  CallOnStack(report_stack + kBytes, f, argument);
  if (blocked) system_calls.rt_sigprocmask(SIG_SETMASK, &mask, nullptr);
  GiveBack();
}

}  // namespace tcmalloc
