// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random numbers without a system call that could block or be refused.

#ifndef TCMALLOC_SYSTEM_RANDOM_H_
#define TCMALLOC_SYSTEM_RANDOM_H_

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

#include "system/clock.h"
#include "system/system_calls.h"

namespace tcmalloc {

// A bijection in which every bit of the input changes every bit of the output with a probability
// near one half (the finalizer of SplitMix64).
constexpr uint64_t MixBits(uint64_t x) {
  x += 0x9e3779b97f4a7c15;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

// A number that differs from process to process, and between the calls of one process that pass
// different salts. The kernel's random bytes of this process stay secret, for libc draws its stack
// and pointer guards from the same ones: two mixed words are folded into one.
inline uint64_t RandomSeed(uint64_t salt) {
  uint64_t words[2] = {};
  const auto* bytes = reinterpret_cast<const void*>(system_calls.getauxval(AT_RANDOM));
  if (bytes != nullptr) {
    std::memcpy(words, bytes, sizeof(words));
  } else {
    words[0] = static_cast<uint64_t>(MonotonicNanoseconds());
    words[1] = reinterpret_cast<uintptr_t>(&words);
  }
  return MixBits(MixBits(words[0] + salt) ^ MixBits(words[1] ^ MixBits(salt)));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RANDOM_H_
