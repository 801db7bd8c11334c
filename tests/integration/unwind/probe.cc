// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A library to preload: walks the stack of some calls of malloc twice, by libunwind and by our
// tables, and counts the stacks that are equal. When the process ends it appends a line to the file
// TCM_PROBE_OUT, and before it the first stacks that differed. TCM_PROBE_EVERY: of so many calls,
// one is looked at.

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "unwind/stack_trace.h"

extern "C" char* program_invocation_short_name;

namespace {

constexpr int kMost = 200;
constexpr int kMostShown = 5;

// libunwind's functions, by the names that its macros make. Its cursor has 127 words.
#if defined(__x86_64__)
#define TCM_LOCAL(name) "_ULx86_64_" name
constexpr const char* kGetContext = "_Ux86_64_getcontext";
constexpr int kProgramCounter = 16;
#else
#define TCM_LOCAL(name) "_ULaarch64_" name
constexpr const char* kGetContext = nullptr;  // a macro there
constexpr int kProgramCounter = 32;
#endif

struct Cursor {
  uintptr_t words[1024];
};
int (*get_context)(ucontext_t*) = nullptr;
int (*init_local)(Cursor*, ucontext_t*) = nullptr;
int (*step)(Cursor*) = nullptr;
int (*get_register)(Cursor*, int, uintptr_t*) = nullptr;

std::atomic<bool> ready{false};
std::atomic<uint64_t> calls{0};
std::atomic<uint64_t> compared{0};
std::atomic<uint64_t> equal{0};
std::atomic<uint64_t> frames_compared{0};
std::atomic<int> shown{0};
uint64_t every = 16;
char report_path[4096];
thread_local bool inside = false;

struct Stack {
  void* frames[kMost];
  int count = 0;
};

__attribute__((noinline)) void WalkByLibunwind(Cursor* cursor, Stack* stack) {
  while (stack->count < kMost && step(cursor) > 0) {
    uintptr_t pc = 0;
    if (get_register(cursor, kProgramCounter, &pc) != 0 || pc == 0) break;
    stack->frames[stack->count++] = reinterpret_cast<void*>(pc);
  }
}

void Describe(std::FILE* file, const char* name, const Stack& stack) {
  std::fprintf(file, "  %s:\n", name);
  for (int i = 0; i < stack.count; ++i) {
    Dl_info info = {};
    const bool known = ::dladdr(stack.frames[i], &info) != 0;
    const auto offset =
        reinterpret_cast<uintptr_t>(stack.frames[i]) - reinterpret_cast<uintptr_t>(info.dli_fbase);
    std::fprintf(file, "    %p %s+%#lx %s\n", stack.frames[i], known ? info.dli_fname : "?",
                 known ? offset : 0, known && info.dli_sname != nullptr ? info.dli_sname : "");
  }
}

void Show(const Stack& ours, const Stack& theirs) {
  if (shown.fetch_add(1) >= kMostShown) return;
  std::FILE* file = std::fopen(report_path, "a");
  if (file == nullptr) return;
  std::fprintf(file, "%s: a stack differs\n", program_invocation_short_name);
  Describe(file, "ours", ours);
  Describe(file, "libunwind", theirs);
  std::fclose(file);
}

__attribute__((noinline)) void Compare() {
  Stack ours;
  Stack theirs;
  ucontext_t context;
  Cursor cursor;
  ours.count = tcmalloc::CaptureStack(ours.frames, kMost, 0);
  get_context(&context);
  if (init_local(&cursor, &context) != 0) return;
  WalkByLibunwind(&cursor, &theirs);
  compared.fetch_add(1, std::memory_order_relaxed);
  frames_compared.fetch_add(static_cast<uint64_t>(ours.count), std::memory_order_relaxed);
  if (ours.count == theirs.count &&
      std::equal(ours.frames, ours.frames + ours.count, theirs.frames)) {
    equal.fetch_add(1, std::memory_order_relaxed);
  } else {
    Show(ours, theirs);
  }
}

template <typename Function>
bool Find(void* library, const char* name, Function** function) {
  *function = reinterpret_cast<Function*>(::dlsym(library, name));
  return *function != nullptr;
}

__attribute__((constructor)) void Start() {
  const char* out = std::getenv("TCM_PROBE_OUT");
  if (out == nullptr || kGetContext == nullptr) return;
  std::snprintf(report_path, sizeof(report_path), "%s", out);
  if (const char* text = std::getenv("TCM_PROBE_EVERY")) every = std::strtoull(text, nullptr, 10);
  inside = true;
  void* library = ::dlopen("libunwind.so.8", RTLD_NOW);
  const bool found = library != nullptr && Find(library, kGetContext, &get_context) &&
                     Find(library, TCM_LOCAL("init_local"), &init_local) &&
                     Find(library, TCM_LOCAL("step"), &step) &&
                     Find(library, TCM_LOCAL("get_reg"), &get_register);
  inside = false;
  ready = found;
}

__attribute__((destructor)) void Report() {
  if (!ready) return;
  ready = false;
  char line[256];
  const int length = std::snprintf(line, sizeof(line), "%s compared=%lu equal=%lu frames=%lu\n",
                                   program_invocation_short_name, compared.load(), equal.load(),
                                   frames_compared.load());
  const int fd = ::open(report_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  if (fd < 0 || length < 0) return;
  if (::write(fd, line, static_cast<size_t>(length)) != length) std::abort();
  ::close(fd);
}

using Malloc = void* (*)(size_t);

// Finds the malloc that the program would use, which need not be libc's. Thread safe, because all
// find the same one.
Malloc NextMalloc() {
  static std::atomic<Malloc> next{nullptr};
  Malloc found = next.load(std::memory_order_relaxed);
  if (found == nullptr) {
    found = reinterpret_cast<Malloc>(::dlsym(RTLD_NEXT, "malloc"));
    next.store(found, std::memory_order_relaxed);
  }
  return found;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) void* malloc(size_t size) {
  if (ready.load(std::memory_order_relaxed) && !inside &&
      calls.fetch_add(1, std::memory_order_relaxed) % every == 0) {
    inside = true;
    const int saved_errno = errno;
    Compare();
    errno = saved_errno;
    inside = false;
  }
  return NextMalloc()(size);
}
