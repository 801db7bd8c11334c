// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the allocator beyond malloc, looked up in the library that was preloaded.

#ifndef TCMALLOC_TESTS_STRESS_SIGNALS_EXTENSION_H_
#define TCMALLOC_TESTS_STRESS_SIGNALS_EXTENSION_H_

#include <dlfcn.h>
#include <gperftools/malloc_extension_c.h>
#include <gperftools/malloc_hook_c.h>

#include <cstddef>
#include <cstring>

namespace tcmalloc::testing {

class Extension {
 public:
  // False where there is none.
  static bool Initialize() {
    return Find("MallocExtension_ReleaseFreeMemory", &release) &&
           Find("MallocExtension_GetNumericProperty", &property) &&
           Find("MallocHook_AddNewHook", &add_hook) &&
           Find("MallocHook_RemoveNewHook", &remove_hook);
  }

  static void ReleaseFreeMemory() { release(); }
  static size_t Property(const char* name) {
    size_t value = 0;
    return property(name, &value) != 0 ? value : 0;
  }
  static size_t BytesInUse() { return Property("generic.current_allocated_bytes"); }
  static bool PerCpu() { return Property("tcmalloc.per_cpu_caches_active") != 0; }
  static void AddHook(MallocHook_NewHook hook) { add_hook(hook); }
  static void RemoveHook(MallocHook_NewHook hook) { remove_hook(hook); }

 private:
  template <typename F>
  static bool Find(const char* name, F* function) {
    void* address = ::dlsym(RTLD_DEFAULT, name);
    std::memcpy(function, &address, sizeof(address));
    return address != nullptr;
  }

  static inline decltype(&MallocExtension_ReleaseFreeMemory) release = nullptr;
  static inline decltype(&MallocExtension_GetNumericProperty) property = nullptr;
  static inline decltype(&MallocHook_AddNewHook) add_hook = nullptr;
  static inline decltype(&MallocHook_RemoveNewHook) remove_hook = nullptr;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_SIGNALS_EXTENSION_H_
