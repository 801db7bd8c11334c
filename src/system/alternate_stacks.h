// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The stacks that threads of the program give to the kernel for signal handlers.

#ifndef TCMALLOC_SYSTEM_ALTERNATE_STACKS_H_
#define TCMALLOC_SYSTEM_ALTERNATE_STACKS_H_

#include <signal.h>
#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// Finds out if threads share one. A program that handles nothing but its own end there may give the
// same stack to all of them, as Varnish does; a handler that many threads run at a time would
// overwrite its own frames.
//
// Each stack has a place, which holds the thread that took it last. Another stack with the same
// place makes it forgotten. Thread safe, also in signal handlers. Constant-initialised.
class AlternateStacks {
 public:
  constexpr AlternateStacks() = default;
  AlternateStacks(const AlternateStacks&) = delete;
  AlternateStacks& operator=(const AlternateStacks&) = delete;

  // Notes that a thread has the stack that begins at `after`, in place of the one at `before`. 0
  // stands for none. Returns true if another thread, which still runs, has it too. May change
  // errno.
  bool Change(pid_t thread, const void* before, const void* after);

 private:
  static constexpr size_t kPlaces = 512;

  struct Entry {
    size_t place;
    uint64_t word;
  };
  static Entry EntryOf(pid_t thread, const void* stack);

  // The upper bits of a stack's hash and its thread; 0 if it is free.
  std::atomic<uint64_t> words_[kPlaces] = {};
};

// Works as the system call sigaltstack, and looks at the stack that the thread has then.
int SetAlternateStack(const stack_t* stack, stack_t* old) noexcept;

// Returns true from the moment on at which SetAlternateStack has seen a stack that handlers of this
// library do not fit: two threads have it, or it has little room beyond what the kernel puts there.
// They run on the stack of the thread then.
bool AlternateStacksAreUnfit() noexcept;

// Has `f` called at that moment, where it is still to come: once, in the thread whose stack it is,
// with the program's signals blocked. The last function that was given is the one of the process.
// Thread safe.
void CallWhenAlternateStacksAreUnfit(void (*f)());

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_ALTERNATE_STACKS_H_
