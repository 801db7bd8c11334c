// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The log of all calls (TCMALLOC_TRACE).

#ifndef TCMALLOC_DEBUG_TRACE_H_
#define TCMALLOC_DEBUG_TRACE_H_

#include <cstddef>

#include "options/options.h"

namespace tcmalloc {

// Appends a line to the file of TCMALLOC_TRACE_FILE, in gperftools' format: function, bytes,
// address, thread and the stack, with tabs between them. The file is opened by the first line: it
// is the user's own and no link, and is not written with raised privileges. Allocates nothing and
// keeps errno.
void WriteTraceLine(const Options& options, const char* call, size_t size, const void* block);

}  // namespace tcmalloc

#endif  // TCMALLOC_DEBUG_TRACE_H_
