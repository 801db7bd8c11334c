// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/fork.h"

#include <atomic>
#include <cerrno>

#include "thread/current_thread.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

constinit std::atomic<bool> registered{false};

void Prepare() {
  const int saved_errno = errno;
  BeginFork();
  errno = saved_errno;
}

}  // namespace

void RegisterForkHandlers() {
  if (registered.load(std::memory_order_relaxed) || registered.exchange(true)) return;
  if (system_calls.pthread_atfork(Prepare, EndForkInParent, EndForkInChild) != 0) {
    registered.store(false);
  }
}

}  // namespace tcmalloc
