// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Prints, as one JSON object, which file serves each allocation function of this process, after
// having used them all from two threads. Run under LD_PRELOAD it shows whether a library really
// takes over; one that leaves a function to libc would make every comparison worthless.

#include <dlfcn.h>
#include <malloc.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

namespace {

constexpr const char* kFunctions[] = {
    "malloc",
    "free",
    "calloc",
    "realloc",
    "memalign",
    "posix_memalign",
    "aligned_alloc",
    "malloc_usable_size",
    "_Znwm",                  // operator new(size_t)
    "_Znam",                  // operator new[](size_t)
    "_ZnwmRKSt9nothrow_t",    // operator new(size_t, nothrow_t)
    "_ZnamRKSt9nothrow_t",    // operator new[](size_t, nothrow_t)
    "_ZdlPv",                 // operator delete(void*)
    "_ZdaPv",                 // operator delete[](void*)
    "_ZnwmSt11align_val_t",   // operator new(size_t, align_val_t)
    "_ZdlPvSt11align_val_t",  // operator delete(void*, align_val_t)
    "_ZdlPvm",                // operator delete(void*, size_t)
};

[[noreturn]] void Fail(const char* what) {
  std::fprintf(stderr, "%s failed\n", what);
  std::exit(1);
}

// The compiler must not pair up and remove the calls.
void* Hide(void* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

// Allocators in use do break alignment promises; that is worth a word, but no reason to leave one
// out of a comparison. Set by any thread, read after they ended.
std::atomic<const char*> g_misaligned{nullptr};

void Use(void* raw, size_t size, size_t alignment, const char* what) {
  void* pointer = Hide(raw);
  if (pointer == nullptr) Fail(what);
  if (reinterpret_cast<size_t>(pointer) % alignment != 0) {
    g_misaligned.store(what, std::memory_order_relaxed);
  }
  std::memset(pointer, 0x5a, size);
}

void UseAll() {
  for (size_t size = 1; size <= size_t{1} << 20; size = size * 3 + 1) {
    void* pointer = std::malloc(size);
    Use(pointer, size, 8, "malloc");
    if (malloc_usable_size(pointer) < size) Fail("malloc_usable_size");
    pointer = std::realloc(pointer, 2 * size);
    Use(pointer, 2 * size, 8, "realloc");
    std::free(pointer);
    pointer = std::calloc(size, 2);
    if (static_cast<char*>(Hide(pointer))[2 * size - 1] != 0) Fail("calloc");
    std::free(pointer);
    pointer = memalign(64, size);
    Use(pointer, size, 64, "memalign");
    std::free(pointer);
    if (posix_memalign(&pointer, 4096, size) != 0) Fail("posix_memalign");
    Use(pointer, size, 4096, "posix_memalign");
    std::free(pointer);
    pointer = std::aligned_alloc(256, (size + 255) / 256 * 256);
    Use(pointer, size, 256, "aligned_alloc");
    std::free(pointer);
    pointer = ::operator new(size);
    Use(pointer, size, 8, "operator new");
    ::operator delete(pointer, size);
    pointer = ::operator new(size, std::align_val_t{128});
    Use(pointer, size, 128, "aligned operator new");
    ::operator delete(pointer, std::align_val_t{128});
  }
}

}  // namespace

int main() {
  std::thread other(UseAll);
  UseAll();
  other.join();
  const char* separator = "{";
  for (const char* name : kFunctions) {
    void* address = dlsym(RTLD_DEFAULT, name);
    Dl_info info = {};
    const bool known = address != nullptr && dladdr(address, &info) != 0;
    std::printf("%s\"%s\":\"%s\"", separator, name, known ? info.dli_fname : "");
    separator = ",";
  }
  const char* misaligned = g_misaligned.load(std::memory_order_relaxed);
  std::printf(",\"misaligned\":\"%s\"}\n", misaligned == nullptr ? "" : misaligned);
  return 0;
}
