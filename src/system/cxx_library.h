// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Functions of the C++ library for code that must load without one.

#ifndef TCMALLOC_SYSTEM_CXX_LIBRARY_H_
#define TCMALLOC_SYSTEM_CXX_LIBRARY_H_

#include <dlfcn.h>

namespace tcmalloc {

// Returns a function of a C++ library that was loaded after this code, by dlopen; or null.
inline void* FindInCxxLibrary(const char* name) {
  for (const char* library : {"libstdc++.so.6", "libc++.so.1"}) {
    void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == nullptr) continue;
    void* function = dlsym(handle, name);
    dlclose(handle);
    if (function != nullptr) return function;
  }
  return nullptr;
}

// Returns `linked` or, if it is null, the function `name` of a C++ library loaded later. `linked`
// is the weak reference to the function, null if there was no C++ library when it was bound.
template <typename Function>
Function* ResolveWeak(Function* linked, const char* name) {
  return linked != nullptr ? linked : reinterpret_cast<Function*>(FindInCxxLibrary(name));
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_CXX_LIBRARY_H_
