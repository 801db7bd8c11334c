// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of a few thread caches under any budget, with all or some of their objects in the window.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/thread_cache_machine.h"

using namespace tcmalloc::testing;

TCM_FUZZ_TARGET(thread_cache_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const Window window = input.Pick({Window::kAll, Window::kFirstBytes, Window::kNone});
  const size_t budget = size_t{input.Take<uint8_t>()} << 15;
  ThreadCacheMachine machine(window, budget);
  ReplayOrAbort(machine, TakeActions<ThreadCacheMachine>(input));
  return 0;
}
