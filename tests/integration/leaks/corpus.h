// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Small programs with known leaks, or with none.

#ifndef TCMALLOC_TESTS_INTEGRATION_LEAKS_CORPUS_H_
#define TCMALLOC_TESTS_INTEGRATION_LEAKS_CORPUS_H_

#include <cstddef>
#include <string_view>
#include <vector>

// A program: what its main function does, and what a check of it finds.
struct Program {
  std::string_view name;
  size_t bytes;  // that are lost, 0 if there is no leak
  size_t objects;
  std::string_view site;  // a function on the stack of the largest leak
  void (*run)();
};

std::vector<Program>& Programs();

struct Registration {
  explicit Registration(const Program& program) { Programs().push_back(program); }
};

// A function that the compiler does not inline, so that it has a name on the stack.
#define SITE extern "C" __attribute__((noinline))

#define LEAK(name, bytes, objects, site)                                              \
  void Run_##name();                                                                  \
  const Registration registration_##name({#name, bytes, objects, #site, Run_##name}); \
  void Run_##name()

#define CLEAN(name)                                                      \
  void Run_##name();                                                     \
  const Registration registration_##name({#name, 0, 0, "", Run_##name}); \
  void Run_##name()

// Keeps the compiler from knowing what becomes of a pointer.
template <typename T>
T* Opaque(T* pointer) {
  asm volatile("" : "+r"(pointer) : : "memory");
  return pointer;
}

// Writes over what other functions have left below on the stack.
__attribute__((noinline)) void ClearStack();

#endif  // TCMALLOC_TESTS_INTEGRATION_LEAKS_CORPUS_H_
