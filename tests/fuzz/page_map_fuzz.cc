// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Spans come and go in the page map.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/page_map_machine.h"

using namespace tcmalloc::testing;

TCM_FUZZ_TARGET(page_map_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  PageMapMachine machine;
  ReplayOrAbort(machine, TakeActions<PageMapMachine>(input));
  return 0;
}
