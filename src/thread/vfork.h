// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// vfork: the child shares the memory, and a malloc there is a malloc of the parent's thread.
//
// The kernel takes the registration for restartable sequences away from the child, which still
// finds its parent's area: the ids in it are those that the parent had, and no section is aborted.
// Such a section would change a slab beside the threads that have the id now. POSIX lets the child
// call nothing but _exit and exec, but programs do more. So the library has a vfork of its own, in
// override/vfork_*.S, that takes the thread off its front end until the parent goes on. The child,
// and whatever a signal handler does meanwhile, is served by the lists that all threads share.
//
// This is not about posix_spawn, system and popen: they do not call vfork, and their children do
// not allocate.

#ifndef TCMALLOC_THREAD_VFORK_H_
#define TCMALLOC_THREAD_VFORK_H_

#include <sys/types.h>

#include "thread/current_thread.h"

namespace tcmalloc {

// Called by the assembly alone, which keeps the state in two registers. Hidden by name, for the
// compiler hides only what it sees defined.
extern "C" {

// Before the system call. Keeps errno. Async-signal-safe.
__attribute__((visibility("hidden"))) SuspendedThread tcmalloc_before_vfork();

// In the parent, with what the system call returned: an error is negative. Returns what vfork does.
__attribute__((visibility("hidden"))) pid_t tcmalloc_after_vfork(SuspendedThread thread,
                                                                 long result);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_VFORK_H_
