// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "allocator/slow_path.h"

#include <cerrno>

#include "allocator/deallocate.h"

namespace tcmalloc {

SlowPath::SlowPath() : saved_errno_(errno), entry_(EnterSlowPath()) {}

SlowPath::~SlowPath() {
  if (TCMALLOC_UNLIKELY(!heap.deferred().empty()) && !reentrant()) {
    heap.deferred().Drain([this](void* block) { FreeInside(*this, block); });
  }
  LeaveSlowPath(entry_);
  errno = saved_errno_;
}

}  // namespace tcmalloc
