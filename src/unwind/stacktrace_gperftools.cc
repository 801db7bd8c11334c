// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' functions that capture stacks.

#include <gperftools/stacktrace.h>

#include "unwind/stack_trace.h"

using tcmalloc::CaptureInterrupted;
using tcmalloc::SkippedBeyondHandler;

int GetStackFrames(void** result, int* sizes, int max_depth, int skip_count) {
  return tcmalloc::CaptureStackFrames(result, sizes, max_depth, skip_count);
}

int GetStackTrace(void** result, int max_depth, int skip_count) {
  return tcmalloc::CaptureStack(result, max_depth, skip_count);
}

int GetStackFramesWithContext(void** result, int* sizes, int max_depth, int skip_count,
                              const void* uc) {
  if (uc == nullptr) return tcmalloc::CaptureStackFrames(result, sizes, max_depth, skip_count);
  return CaptureInterrupted(uc, {.addresses = result, .sizes = sizes, .limit = max_depth},
                            SkippedBeyondHandler(skip_count));
}

int GetStackTraceWithContext(void** result, int max_depth, int skip_count, const void* uc) {
  if (uc == nullptr) return tcmalloc::CaptureStack(result, max_depth, skip_count);
  return tcmalloc::CaptureStackFrom(uc, result, max_depth, SkippedBeyondHandler(skip_count));
}
