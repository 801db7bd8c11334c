// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The stack on which reports of mistakes are written, because the thread's own may be almost at its
// end: the smallest ones of threads and of signal handlers have no room for names and mappings.

#ifndef TCMALLOC_SYSTEM_REPORT_STACK_H_
#define TCMALLOC_SYSTEM_REPORT_STACK_H_

namespace tcmalloc {

// Calls f(argument) on a stack that the process has for it, with all signals blocked: a handler
// would find the alternate stack free that this thread may be on. Only one call can have that
// stack. Others that come meanwhile, from another thread or from within f, stay on the stack of
// their thread. `f` returns, and does not walk the stack that it runs on, which ends here.
void CallOnReportStack(void (*f)(void* argument), void* argument);

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_REPORT_STACK_H_
