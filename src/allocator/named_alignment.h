// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An alignment in a message about a delete that names another one than the allocation did.

#ifndef TCMALLOC_ALLOCATOR_NAMED_ALIGNMENT_H_
#define TCMALLOC_ALLOCATOR_NAMED_ALIGNMENT_H_

#include <cstddef>

#include "base/message.h"

namespace tcmalloc {

struct NamedAlignment {
  explicit NamedAlignment(size_t alignment) : bytes(alignment) {}
  size_t bytes;  // 0 where none is named
};
inline Message& operator<<(Message& message, NamedAlignment alignment) {
  return alignment.bytes != 0 ? message << alignment.bytes : message << "none";
}

}  // namespace tcmalloc

#endif  // TCMALLOC_ALLOCATOR_NAMED_ALIGNMENT_H_
