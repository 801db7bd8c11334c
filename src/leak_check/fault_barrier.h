// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Calls that end where they run into a fault.

#ifndef TCMALLOC_LEAK_CHECK_FAULT_BARRIER_H_
#define TCMALLOC_LEAK_CHECK_FAULT_BARRIER_H_

namespace tcmalloc {

// Calls f(argument). Returns false if a fault ended the call: memory that was not there, an
// instruction, a system call that a filter answers with a signal, or abort. Nothing of the call is
// destroyed then. The program's handlers of these signals do not run, and are back afterwards; a
// signal of these that somebody sends meanwhile comes after the call.
//
// To be called by the only thread of the process, while it blocks the program's signals. Not
// reentrant.
[[nodiscard]] bool CallUntilFault(void (*f)(void* argument), void* argument);

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_FAULT_BARRIER_H_
