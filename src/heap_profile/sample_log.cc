// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "heap_profile/sample_log.h"

namespace tcmalloc {

void SampleLog::AddUser() {
  SpinLockHolder holder(lock_);
  users_ += 1;
}

void SampleLog::RemoveUser() {
  SpinLockHolder holder(lock_);
  users_ -= 1;
  if (users_ == 0) rows_.Free(stacks_);
}

void SampleLog::AppendForUsers(const ProfileRow& row) {
  SpinLockHolder holder(lock_);
  // The last user may have gone meanwhile.
  if (users_ == 0) return;
  const uint64_t limit = limit_;
  if (limit != 0 && rows_.rows().size() >= limit) return rows_.NoteLeftOut(1);
  rows_.Append(row, stacks_);
}

}  // namespace tcmalloc
