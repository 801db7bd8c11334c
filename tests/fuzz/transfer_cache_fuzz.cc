// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of a transfer cache of any class and size.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/transfer_machine.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

TCM_FUZZ_TARGET(transfer_cache_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const SizeClassInfo& info = kSizeClasses[1 + input.Take<uint8_t>() % (kSizeClassCount - 1)];
  const uint32_t max_chains = 1 + input.Take<uint8_t>() % 64;
  TransferMachine machine(info.size, max_chains);
  ReplayOrAbort(machine,
                TakeActions<TransferMachine>(input, MostActionsOf(size_t{info.batch} * info.size)));
  return 0;
}
