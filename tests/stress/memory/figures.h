// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Figures of the allocator, for programs that do not link it. Unlike what the kernel says
// of the process it does not depend on how busy the machine is.

#ifndef TCMALLOC_TESTS_STRESS_MEMORY_FIGURES_H_
#define TCMALLOC_TESTS_STRESS_MEMORY_FIGURES_H_

#include <dlfcn.h>

#include <array>
#include <cstddef>
#include <cstdio>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {

// A property of the allocator that serves this process. Does not allocate.
inline size_t Property(const char* name) {
  using Get = int (*)(const char*, size_t*);
  static const auto get =
      reinterpret_cast<Get>(dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty"));
  PROGRAM_CHECK(get != nullptr);
  size_t value = 0;
  PROGRAM_CHECK(get(name, &value) != 0);
  return value;
}

// A figure of docs/statistics.md. Does not allocate.
inline size_t Figure(const char* name) {
  std::array<char, 128> property{};
  snprintf(property.data(), property.size(), "tcmalloc.statistics.%s", name);
  return Property(property.data());
}

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_MEMORY_FIGURES_H_
