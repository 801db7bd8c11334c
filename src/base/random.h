// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A small generator for decisions that need no cryptographic quality.

#ifndef TCMALLOC_BASE_RANDOM_H_
#define TCMALLOC_BASE_RANDOM_H_

#include <cstdint>

namespace tcmalloc {

// Returns the state that follows `state`, which is also the random number: a step of a Weyl
// sequence and a mix of its bits. Every state is valid.
constexpr uint64_t NextRandom(uint64_t state) {
  state += 0x9e3779b97f4a7c15;
  state = (state ^ (state >> 30)) * 0xbf58476d1ce4e5b9;
  state = (state ^ (state >> 27)) * 0x94d049bb133111eb;
  return state ^ (state >> 31);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_BASE_RANDOM_H_
