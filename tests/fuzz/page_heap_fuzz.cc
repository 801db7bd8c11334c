// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of both page heaps under any settings.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
#include "fuzz/fuzz_target.h"
#include "model/page_heap_machine.h"

using namespace tcmalloc;
using namespace tcmalloc::testing;

namespace {

PageHeapConfig TakeConfig(FuzzInput& input) {
  PageHeapConfig config{.name = "fuzz", .failures = true};
  config.reserved_bytes = input.Pick<size_t>({4, 32, 256}) << 20;
  config.gap = input.Pick<size_t>({0, kPageSize});
  config.growth = input.Pick({Length(1), Length(100), Length(500)});
  config.limit = input.Pick({Length(0), Length(200), Length(1000)});
  config.release_rate = input.Pick<double>({0, 100});
  config.aggressive_decommit = input.Pick({false, true});
  config.half_life_ns = input.Pick<uint64_t>({0, 1000});
  config.hugepages =
      input.Pick({HugepageMode::kNever, HugepageMode::kMadvise, HugepageMode::kAlways});
  return config;
}

// Mostly few, for all of them are looked at.
uint64_t Pages(uint64_t number) { return 1 + number % (number % 16 == 0 ? 1200 : 24); }

using Classic = PageHeapMachine<TestHeap>;
using Huge = PageHeapMachine<HugeTestHeap>;

// An action with operands in the ranges that the machine asks for.
Action InRange(const Action& action) {
  switch (action.op) {
    case Classic::kFailGrowth:
      return {action.op, 1 + action.a % 30, 0};
    case Classic::kFailRelease:
      return {action.op, 1 + action.a % 5, 0};
    case Classic::kNewAligned:
      return {action.op, Pages(action.a), action.b % 8};
    default:
      return {action.op, Pages(action.a), action.b};
  }
}

template <typename Machine>
void Run(const PageHeapConfig& config, const Actions& actions) {
  Machine machine(config);
  ReplayOrAbort(machine, actions);
}

}  // namespace

TCM_FUZZ_TARGET(page_heap_fuzz, AppendActions)(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  const PageHeapConfig config = TakeConfig(input);
  Actions actions = TakeActions<Classic>(input);
  for (Action& action : actions) action = InRange(action);
  Run<Classic>(config, actions);
  Run<Huge>(config, actions);
  return 0;
}
