// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Every entry point of the malloc surface, looked up at run time. A test that calls through this
// table tests whatever allocator is preloaded, needs no declaration that the C library lacks, and
// leaves the compiler nothing to assume about the calls (it may not fold a malloc/free pair or
// warn about a size that is meant to be absurd).

#ifndef TCMALLOC_TESTS_CONFORMANCE_MALLOC_API_H_
#define TCMALLOC_TESTS_CONFORMANCE_MALLOC_API_H_

#include <dlfcn.h>
#include <malloc.h>

#include <cstddef>
#include <cstdio>
#include <new>

namespace tcmalloc::testing {

// The address of a dynamic symbol, as any function type; null where no loaded object has it.
class Symbol {
 public:
  explicit Symbol(const char* name) : address_(dlsym(RTLD_DEFAULT, name)) {}

  template <typename Function>
  operator Function*() const {  // NOLINT(google-explicit-constructor): initialises a typed member
    return reinterpret_cast<Function*>(address_);
  }

  // Path of the object that defines the symbol; empty where nothing does.
  const char* object() const {
    Dl_info info;
    if (address_ == nullptr || dladdr(address_, &info) == 0) return "";
    return info.dli_fname;
  }

 private:
  void* address_;
};

// Members keep the name of the C function they hold. Entry points outside glibc 2.36 may be null.
// The operators are found by mangled name; size_t is `unsigned long` on all supported targets.
struct MallocApi {
  using Size = std::size_t;
  using Align = std::align_val_t;
  using Nothrow = const std::nothrow_t&;

  void* (*malloc)(Size) = Symbol("malloc");
  void (*free)(void*) = Symbol("free");
  void* (*calloc)(Size, Size) = Symbol("calloc");
  void* (*realloc)(void*, Size) = Symbol("realloc");
  void* (*reallocarray)(void*, Size, Size) = Symbol("reallocarray");
  void* (*memalign)(Size, Size) = Symbol("memalign");
  void* (*aligned_alloc)(Size, Size) = Symbol("aligned_alloc");
  int (*posix_memalign)(void**, Size, Size) = Symbol("posix_memalign");
  void* (*valloc)(Size) = Symbol("valloc");
  void* (*pvalloc)(Size) = Symbol("pvalloc");
  Size (*malloc_usable_size)(void*) = Symbol("malloc_usable_size");
  int (*malloc_trim)(Size) = Symbol("malloc_trim");
  int (*malloc_info)(int, FILE*) = Symbol("malloc_info");
  void (*malloc_stats)() = Symbol("malloc_stats");
  int (*mallopt)(int, int) = Symbol("mallopt");
  struct mallinfo (*mallinfo)() = Symbol("mallinfo");
  struct mallinfo2 (*mallinfo2)() = Symbol("mallinfo2");

  Size (*nallocx)(Size, int) = Symbol("nallocx");
  void (*sdallocx)(void*, Size, int) = Symbol("sdallocx");
  void (*free_sized)(void*, Size) = Symbol("free_sized");
  void (*free_aligned_sized)(void*, Size, Size) = Symbol("free_aligned_sized");

  void* (*new_plain)(Size) = Symbol("_Znwm");
  void* (*new_array)(Size) = Symbol("_Znam");
  void* (*new_nothrow)(Size, Nothrow) = Symbol("_ZnwmRKSt9nothrow_t");
  void* (*new_array_nothrow)(Size, Nothrow) = Symbol("_ZnamRKSt9nothrow_t");
  void* (*new_aligned)(Size, Align) = Symbol("_ZnwmSt11align_val_t");
  void* (*new_array_aligned)(Size, Align) = Symbol("_ZnamSt11align_val_t");
  void* (*new_aligned_nothrow)(Size, Align, Nothrow) = Symbol("_ZnwmSt11align_val_tRKSt9nothrow_t");
  void* (*new_array_aligned_nothrow)(Size, Align,
                                     Nothrow) = Symbol("_ZnamSt11align_val_tRKSt9nothrow_t");

  void (*delete_plain)(void*) = Symbol("_ZdlPv");
  void (*delete_array)(void*) = Symbol("_ZdaPv");
  void (*delete_nothrow)(void*, Nothrow) = Symbol("_ZdlPvRKSt9nothrow_t");
  void (*delete_array_nothrow)(void*, Nothrow) = Symbol("_ZdaPvRKSt9nothrow_t");
  void (*delete_sized)(void*, Size) = Symbol("_ZdlPvm");
  void (*delete_array_sized)(void*, Size) = Symbol("_ZdaPvm");
  void (*delete_aligned)(void*, Align) = Symbol("_ZdlPvSt11align_val_t");
  void (*delete_array_aligned)(void*, Align) = Symbol("_ZdaPvSt11align_val_t");
  void (*delete_aligned_nothrow)(void*, Align,
                                 Nothrow) = Symbol("_ZdlPvSt11align_val_tRKSt9nothrow_t");
  void (*delete_array_aligned_nothrow)(void*, Align,
                                       Nothrow) = Symbol("_ZdaPvSt11align_val_tRKSt9nothrow_t");
  void (*delete_sized_aligned)(void*, Size, Align) = Symbol("_ZdlPvmSt11align_val_t");
  void (*delete_array_sized_aligned)(void*, Size, Align) = Symbol("_ZdaPvmSt11align_val_t");
};

inline const MallocApi& Api() {
  static const MallocApi api;
  return api;
}

// jemalloc's flag word for an alignment that is a power of two.
inline int LgAlignFlag(std::size_t alignment) { return __builtin_ctzll(alignment); }

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_CONFORMANCE_MALLOC_API_H_
