// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Prints the heap profiler's messages, in the words of gperftools.

#ifndef TCMALLOC_RECORDER_SAY_H_
#define TCMALLOC_RECORDER_SAY_H_

#include <unistd.h>

#include "base/message.h"

namespace tcmalloc {

// Writes a line to stderr, with nothing in front. Waits up to a tenth of a second.
inline void Say(const Message& message) { message.WriteLine(STDERR_FILENO, 100); }

}  // namespace tcmalloc

#endif  // TCMALLOC_RECORDER_SAY_H_
