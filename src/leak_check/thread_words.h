// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Words of threads that run or are stopped, read where libc keeps what it knows of them.

#ifndef TCMALLOC_LEAK_CHECK_THREAD_WORDS_H_
#define TCMALLOC_LEAK_CHECK_THREAD_WORDS_H_

#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// At least as much as libc's descriptor of a thread, which lies behind the thread pointer or, where
// variables do, before it.
inline constexpr size_t kDescriptorBytes = 4096;

// Requires the word to be readable; its owner may change it.
inline uintptr_t LoadWord(uintptr_t address) {
  return *reinterpret_cast<const volatile uintptr_t*>(address);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_THREAD_WORDS_H_
