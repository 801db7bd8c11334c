// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Extends a message about a mistake of the program by stacks, in libraries with profiles.

#ifndef TCMALLOC_HEAP_PROFILE_CRASH_REPORT_H_
#define TCMALLOC_HEAP_PROFILE_CRASH_REPORT_H_

#include "base/message.h"

namespace tcmalloc {

// Writes the message, the call that noticed the mistake, its stack and, if `block` is a sample, the
// stack of its allocation. Takes no lock of the heap, allocates nothing from it and needs little of
// the thread's stack.
void ReportMisuse(const Message& message, const void* block);

}  // namespace tcmalloc

#endif  // TCMALLOC_HEAP_PROFILE_CRASH_REPORT_H_
