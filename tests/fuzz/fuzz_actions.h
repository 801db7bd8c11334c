// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Inputs as actions on the machines of the model tests. See model/replay.h.

#ifndef TCMALLOC_TESTS_FUZZ_FUZZ_ACTIONS_H_
#define TCMALLOC_TESTS_FUZZ_FUZZ_ACTIONS_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <iterator>

#include "fuzz/fuzz_input.h"
#include "model/replay.h"

namespace tcmalloc::testing {

// Bounds the time and the memory that one input takes.
inline constexpr size_t kMostActions = 400;

template <typename Machine>
Actions TakeActions(FuzzInput& input, size_t most = kMostActions) {
  Actions actions;
  while (!input.empty() && actions.size() < most) {
    const auto op = static_cast<unsigned>(input.Take<uint8_t>() % std::size(Machine::kNames));
    const uint64_t a = input.Take<uint16_t>();
    actions.push_back({op, a, input.Take<uint16_t>()});
  }
  return actions;
}

// How many actions may each take `bytes` of memory and keep it.
inline size_t MostActionsOf(size_t bytes) {
  constexpr size_t kMostBytes = size_t{64} << 20;
  return std::min(kMostActions, kMostBytes / bytes);
}

// Tells the fuzzer that the input is a failure if the machine says so.
template <typename Machine>
void ReplayOrAbort(Machine& machine, const Actions& actions) {
  if (!Replay(machine, actions)) std::abort();
}

// Mutates an input of actions. libFuzzer's own mutations keep an input short until shorter ones
// show nothing new, but a component fills up and drains only in long runs.
size_t AppendActions(uint8_t* data, size_t size, size_t max_size, unsigned seed);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FUZZ_FUZZ_ACTIONS_H_
