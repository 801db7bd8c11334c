// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_SYSTEM_SINGLE_THREADED_H_
#define TCMALLOC_SYSTEM_SINGLE_THREADED_H_

// Of the C library since glibc 2.32. Elsewhere its address is null.
extern "C" __attribute__((weak)) char __libc_single_threaded;

namespace tcmalloc {

// Names a byte that is not 0 if the process has only the calling thread for sure. That can change
// only where the thread makes another one.
inline const char* SingleThreadedFlag() {
  static constexpr char kUnknown = 0;
  return &__libc_single_threaded != nullptr ? &__libc_single_threaded : &kUnknown;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_SINGLE_THREADED_H_
