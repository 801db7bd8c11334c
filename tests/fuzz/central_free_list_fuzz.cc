// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of a central free list of any class.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/central_machine.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

TCM_FUZZ_TARGET(central_free_list_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const SizeClassInfo& info = kSizeClasses[1 + input.Take<uint8_t>() % (kSizeClassCount - 1)];
  CentralMachine machine(info.size);
  ReplayOrAbort(machine, TakeActions<CentralMachine>(
                             input, MostActionsOf(2 * size_t{info.batch} * info.size)));
  return 0;
}
