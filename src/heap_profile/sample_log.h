// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The samples that come and go while somebody asks for them.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLE_LOG_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLE_LOG_H_

#include <cstdint>

#include "base/relaxed.h"
#include "base/spin_lock.h"
#include "heap_profile/sample_buffer.h"
#include "heap_profile/stack_table.h"

namespace tcmalloc {

// Keeps rows while it has users, and gives their memory back when the last one goes. Several users
// share the rows; each takes those since its own begin.
//
// Thread safe. Called in the slow path, so that no signal handler and no fork meets the lock.
class SampleLog {
 public:
  constexpr explicit SampleLog(StackTable& stacks) : stacks_(stacks) {}
  SampleLog(const SampleLog&) = delete;
  SampleLog& operator=(const SampleLog&) = delete;

  // Sets the number of rows beyond which new ones are counted and left out; 0 sets no limit.
  void set_limit(uint64_t rows) { limit_ = rows; }

  void AddUser() TCMALLOC_EXCLUDES(lock_);
  void RemoveUser() TCMALLOC_EXCLUDES(lock_);

  bool has_users() const { return users_ != 0; }

  // Adds a row if there is a user. Called while the sample's stack has a reference.
  void Append(const ProfileRow& row) {
    if (users_ != 0) AppendForUsers(row);
  }

  // Calls f(const ProfileRow&) for each row.
  template <typename F>
  void ForEach(F f) TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    for (const ProfileRow& row : rows_.rows()) f(row);
  }
  // Returns the number of rows that were left out since there are users.
  uint64_t left_out() TCMALLOC_EXCLUDES(lock_) {
    SpinLockHolder holder(lock_);
    return rows_.left_out();
  }

 private:
  void AppendForUsers(const ProfileRow& row) TCMALLOC_EXCLUDES(lock_);

  StackTable& stacks_;
  SpinLock lock_{LockRank::kProfile};
  Relaxed<uint32_t> users_ = 0;  // written under the lock
  Relaxed<uint64_t> limit_ = 0;
  SampleBuffer rows_ TCMALLOC_GUARDED_BY(lock_);
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLE_LOG_H_
