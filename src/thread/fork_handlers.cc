// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "thread/fork_handlers.h"

#include "system/system_calls.h"

namespace tcmalloc {

void ForkHandlers::Register() {
  // The flag publishes nothing but itself.
  if (registered_.load(std::memory_order_relaxed)) return;
  if (registered_.exchange(true, std::memory_order_relaxed)) return;
  if (system_calls.pthread_atfork(before_, in_parent_, in_child_) != 0) {
    registered_.store(false, std::memory_order_relaxed);
  }
}

}  // namespace tcmalloc
