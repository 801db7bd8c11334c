// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls of the classic page heap under any settings.

#include <cstddef>
#include <cstdint>

#include "fuzz/fuzz_actions.h"
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
  return config;
}

// Mostly few, for all of them are looked at.
uint64_t Pages(uint64_t number) { return 1 + number % (number % 16 == 0 ? 400 : 24); }

// An action with operands in the ranges that the machine asks for.
Action InRange(const Action& action) {
  switch (action.op) {
    case PageHeapMachine::kFailGrowth:
      return {action.op, 1 + action.a % 30, 0};
    case PageHeapMachine::kFailRelease:
      return {action.op, 1 + action.a % 5, 0};
    case PageHeapMachine::kNewAligned:
      return {action.op, Pages(action.a), action.b % 8};
    default:
      return {action.op, Pages(action.a), action.b};
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  FuzzInput input(data, size);
  PageHeapMachine machine(TakeConfig(input));
  Actions actions = TakeActions<PageHeapMachine>(input);
  for (Action& action : actions) action = InRange(action);
  ReplayOrAbort(machine, actions);
  return 0;
}
