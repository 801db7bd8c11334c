// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The program's hooks for samples.

#ifndef TCMALLOC_HEAP_PROFILE_SAMPLED_HOOKS_H_
#define TCMALLOC_HEAP_PROFILE_SAMPLED_HOOKS_H_

#include <sys/types.h>
#include <tcmalloc/sampled_allocation.h>

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "base/spin_lock.h"
#include "heap_profile/sample_table.h"
#include "heap_profile/stack_table.h"
#include "hook/hook_list.h"

namespace tcmalloc {

// Samples that came and went are noted in the slow path, where no hook can run, and reported by the
// same thread when it has left it.
//
// Thread safe.
class SampledHooks {
 public:
  using Hook = void (*)(const SampledAllocation& sample);

  constexpr explicit SampledHooks(StackTable& stacks) : stacks_(stacks) {}
  SampledHooks(const SampledHooks&) = delete;
  SampledHooks& operator=(const SampledHooks&) = delete;

  HookList<Hook>& list(bool of_frees) { return of_frees ? freed_ : allocated_; }

  bool has_hooks() const { return !allocated_.empty() || !freed_.empty(); }

  // Notes a sample if there is a hook for it. Called in the slow path, while the sample's stack has
  // a reference.
  void Note(bool of_free, SampleId id, const Sample& sample) {
    if (TCMALLOC_UNLIKELY(!list(of_free).empty())) NoteForHooks({of_free, id, 0, 0, sample});
  }

  // Reports the events that the running thread has noted. Called outside the slow path. Where a
  // fork kept a thread from the slow path for long, other threads report its events after a while.
  TCMALLOC_COLD void CallNoted() TCMALLOC_EXCLUDES(lock_);

 private:
  struct Event {
    bool of_free = false;
    SampleId id = 0;
    pid_t thread = 0;
    int64_t noted_ns = 0;
    Sample sample;
  };

  TCMALLOC_COLD void NoteForHooks(Event event) TCMALLOC_EXCLUDES(lock_);
  bool Take(pid_t thread, Event* event) TCMALLOC_EXCLUDES(lock_);
  bool TakeInSlowPath(pid_t thread, Event* event, const void** frames, size_t* depth);
  void Report(const Event& event, const void* const* frames, size_t depth);
  bool Grow() TCMALLOC_REQUIRES(lock_);
  void ForgetAfterFork() TCMALLOC_REQUIRES(lock_);

  StackTable& stacks_;
  HookList<Hook> allocated_;
  HookList<Hook> freed_;
  SpinLock lock_{LockRank::kProfile};
  // In order of time. Its stacks have references.
  Event* events_ TCMALLOC_GUARDED_BY(lock_) = nullptr;
  size_t count_ TCMALLOC_GUARDED_BY(lock_) = 0;
  size_t capacity_ TCMALLOC_GUARDED_BY(lock_) = 0;
  uint32_t forks_ TCMALLOC_GUARDED_BY(lock_) = 0;  // when they were noted: see Errands
};

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_SAMPLED_HOOKS_H_
