// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// vfork: the child shares the memory, and a malloc there is a malloc of the parent's thread.
//
// The kernel takes the registration for restartable sequences away from the child. The child still
// finds its parent's area; the ids in it are those that the parent had, and no section is aborted.
// A section in the child would thus change a slab at the same time as the threads that have the id
// now. POSIX lets the child call nothing but _exit and exec, but programs do more. So the library
// has a vfork of its own, in override/vfork_*.S, that takes the thread off its front end until the
// parent goes on. The lists that all threads share serve the child and any signal handler
// meanwhile.
//
// posix_spawn, system and popen are not affected: they do not call vfork, and their children do not
// allocate.

#ifndef TCMALLOC_THREAD_VFORK_H_
#define TCMALLOC_THREAD_VFORK_H_

#include <cstdint>

#include "cache/thread_header.h"

namespace tcmalloc {

// A thread without its front end, as Threads::Suspend left it. It fits two registers.
struct SuspendedThread {
  ThreadHeader* front_end;  // the front end that it had, or null
  uint8_t phase;            // a value of Phase
  uint8_t destructor_rounds;
  bool interrupted;  // it was inside the slow path, and stays as it is
};
static_assert(sizeof(SuspendedThread) == 2 * sizeof(void*));

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_VFORK_H_
