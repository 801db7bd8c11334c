// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Random numbers without a system call that could block or be refused.

#ifndef TCMALLOC_SYSTEM_RANDOM_H_
#define TCMALLOC_SYSTEM_RANDOM_H_

#include <sys/auxv.h>

#include <cstdint>
#include <cstring>

#include "base/random.h"
#include "system/clock.h"
#include "system/system_calls.h"

namespace tcmalloc {

// Returns a number that differs from process to process, and between the calls of one process that
// pass different salts. The kernel's random bytes of this process stay secret, because libc derives
// its stack and pointer guards from the same ones: two mixed words are folded into one.
inline uint64_t RandomSeed(uint64_t salt) {
  uint64_t words[2] = {};
  const auto* bytes = reinterpret_cast<const void*>(system_calls.getauxval(AT_RANDOM));
  if (bytes != nullptr) {
    std::memcpy(words, bytes, sizeof(words));
  } else {
    words[0] = static_cast<uint64_t>(MonotonicNanoseconds());
    words[1] = reinterpret_cast<uintptr_t>(&words);
  }
  return NextRandom(NextRandom(words[0] + salt) ^ NextRandom(words[1] ^ NextRandom(salt)));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_RANDOM_H_
