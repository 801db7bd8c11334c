// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_FAKES_FILLED_H_
#define TCMALLOC_TESTS_FAKES_FILLED_H_

#include <cstddef>
#include <cstring>

namespace tcmalloc::testing {

// Returns true if each of n bytes has that value. Compares in one call, because a loop over
// bytes takes most of a test under a sanitizer or in an emulator.
inline bool IsFilled(const void* start, size_t n, unsigned char value) {
  const auto* bytes = static_cast<const unsigned char*>(start);
  return n == 0 || (bytes[0] == value && std::memcmp(bytes, bytes + 1, n - 1) == 0);
}
inline bool IsZero(const void* start, size_t n) { return IsFilled(start, n, 0); }

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FILLED_H_
