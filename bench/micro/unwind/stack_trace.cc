// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An operation captures a stack of 30 frames. Compiled with frame pointers, so that all ways to
// walk the stack find the same frames.

#include "unwind/stack_trace.h"

#include <dlfcn.h>
#include <execinfo.h>

#include <cstdint>
#include <cstdio>
#include <functional>
#include <utility>

#include "common/harness.h"

namespace tcmalloc::bench {
namespace {

constexpr int kFrames = 30;
void* frames[kFrames];

// A chain of different functions, as in a program, not of one that calls itself.
template <int depth>
__attribute__((noinline)) void CallAtDepth(const std::function<void()>& innermost) {
  if constexpr (depth == 0) {
    innermost();
  } else {
    CallAtDepth<depth - 1>(innermost);
  }
  asm volatile("");
}

using Capture = int (*)(void** frames, int limit);

void RunCapture(Harness& harness, const char* name, Capture capture) {
  harness.Run(name, [&](uint64_t n) {
    CallAtDepth<kFrames>([&] {
      for (uint64_t i = 0; i < n; ++i) Use(capture(frames, kFrames));
      if (capture(frames, kFrames) != kFrames) std::fprintf(stderr, "%s: too few frames\n", name);
    });
  });
}

int CaptureByMethod(void** addresses, int limit) { return CaptureStack(addresses, limit, 0); }

// Not linked, so that the build does not need it.
Capture FindLibunwind() {
  void* library = ::dlopen("libunwind.so.8", RTLD_NOW);
  if (library == nullptr) return nullptr;
  return reinterpret_cast<Capture>(::dlsym(library, "unw_backtrace"));
}

}  // namespace
}  // namespace tcmalloc::bench

int main(int argc, char** argv) {
  using namespace tcmalloc;
  bench::Harness harness(argc, argv);
  SetUnwindMethod(UnwindMethod::kTables);
  bench::RunCapture(harness, "unwind/tables", bench::CaptureByMethod);
  SetUnwindMethod(UnwindMethod::kFramePointers);
  bench::RunCapture(harness, "unwind/frame_pointers", bench::CaptureByMethod);
  if (const bench::Capture libunwind = bench::FindLibunwind(); libunwind != nullptr) {
    bench::RunCapture(harness, "unwind/libunwind", libunwind);
  }
  bench::RunCapture(harness, "unwind/libc", ::backtrace);
}
