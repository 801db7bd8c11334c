// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memories that threads choose by themselves, one for each.

#ifndef TCMALLOC_UNWIND_CLAIM_OF_THREAD_H_
#define TCMALLOC_UNWIND_CLAIM_OF_THREAD_H_

#include <pthread.h>

#include <bit>
#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "system/mapped_object.h"

namespace tcmalloc {

// Claims the running thread's element, chosen by a hash of the address of its descriptor, so that a
// thread gets the same one each time and may share it with others. Returns null if it is claimed
// already, by another thread or by what a signal handler interrupted, or if there is no memory for
// it. The caller releases it.
template <typename T, size_t kCount>
TCMALLOC_ALWAYS_INLINE T* ClaimOfThread(MappedObject<T> (&all)[kCount]) {
  static_assert(std::has_single_bit(kCount) && kCount > 1);
  constexpr uint64_t kGolden = 0x9E37'79B9'7F4A'7C15;
  const uint64_t hash = static_cast<uint64_t>(::pthread_self()) * kGolden;
  T* element = all[hash >> (64 - std::countr_zero(kCount))].GetOrMap();
  return TCMALLOC_LIKELY(element != nullptr) && element->TryClaim() ? element : nullptr;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_CLAIM_OF_THREAD_H_
