// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Allocates at each point of a start at which a program can run code, from the earliest on, and
// frees it all in main. Nothing that a resolver or .preinit_array runs may rely on libc beyond
// malloc, so these only record; main checks.

#include <dlfcn.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "stress/threads/workload.h"

namespace {

enum Stage : size_t {
  kResolver,
  kPreinit,
  kFirstConstructor,
  kEarlyLoad,
  kStaticObject,
  kMain,
  kStages,
};

constexpr size_t kBlocksPerStage = 64;

// Zero-initialized, so valid before any constructor.
void* blocks[kStages][kBlocksPerStage];
void* library = nullptr;

size_t SizeOf(size_t index) { return index * index * 8 + 1; }

unsigned char PatternOf(size_t stage, size_t index) {
  return static_cast<unsigned char>(stage * 64 + index);
}

// Frees as well, so that early blocks enter the caches and must survive what start-up does to them.
__attribute__((always_inline)) inline void AllocateIn(Stage stage) {
  for (size_t i = 0; i < kBlocksPerStage; ++i) {
    free(malloc(SizeOf(i)));
    auto* block = static_cast<unsigned char*>(malloc(SizeOf(i)));
    blocks[stage][i] = block;
    if (block == nullptr) continue;
    block[0] = PatternOf(stage, i);
    block[SizeOf(i) - 1] = PatternOf(stage, i);
  }
}

void CheckAndFree(Stage stage) {
  for (size_t i = 0; i < kBlocksPerStage; ++i) {
    auto* block = static_cast<unsigned char*>(blocks[stage][i]);
    PROGRAM_CHECK(block != nullptr);
    PROGRAM_CHECK(block[0] == PatternOf(stage, i));
    PROGRAM_CHECK(block[SizeOf(i) - 1] == PatternOf(stage, i));
    free(block);
  }
}

int Answer() { return 42; }

void Preinit(int /*argc*/, char** /*argv*/, char** /*environment*/) { AllocateIn(kPreinit); }

__attribute__((section(".preinit_array"), used)) void (*preinit_entry)(int, char**,
                                                                       char**) = Preinit;

__attribute__((constructor(101))) void FirstConstructor() { AllocateIn(kFirstConstructor); }

__attribute__((constructor(102))) void EarlyLoad() {
  library = dlopen("libresolv.so.2", RTLD_NOW | RTLD_LOCAL);
  AllocateIn(kEarlyLoad);
}

struct StaticObject {
  StaticObject() : text(100, 's') { AllocateIn(kStaticObject); }
  std::string text;
};

const StaticObject static_object;

}  // namespace

extern "C" {

// Runs while the program is relocated: before constructors, and before libc has given the main
// thread's thread-local variables their initial values.
__attribute__((no_sanitize("address", "undefined"))) int (*ResolveAnswer())() {
  AllocateIn(kResolver);
  return Answer;
}

int IndirectAnswer() __attribute__((ifunc("ResolveAnswer")));
}

int main() {
  PROGRAM_CHECK(IndirectAnswer() == 42);
  PROGRAM_CHECK(library != nullptr);
  PROGRAM_CHECK(static_object.text == std::string(100, 's'));
  AllocateIn(kMain);
  for (size_t stage = 0; stage < kStages; ++stage) CheckAndFree(static_cast<Stage>(stage));

  // Blocks freed from each stage are whole again.
  tcmalloc::testing::BlockSet<256> set(1);
  set.Steps(10'000);
  set.FreeAll();
  PROGRAM_CHECK(dlclose(library) == 0);
  puts("allocated in all stages of the start");
  return 0;
}
