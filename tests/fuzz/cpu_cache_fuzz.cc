// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of a few threads that move between the caches of a few CPUs, under any budget. Does nothing
// where there are no restartable sequences.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/cpu_cache_machine.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

TCM_FUZZ_TARGET(cpu_cache_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  if (Support().state != RseqState::kUsable) return 0;
  FuzzInput input(data, size);
  const CpuIds ids = input.Pick({CpuIds::kMmCid, CpuIds::kCpuId});
  const size_t bytes_per_cpu = size_t{input.Take<uint8_t>()} << 13;
  CpuCacheMachine machine(ids, bytes_per_cpu);
  ReplayOrAbort(machine, TakeActions<CpuCacheMachine>(input));
  return 0;
}
