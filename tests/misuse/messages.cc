// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Messages name the call that noticed a mistake, also where no call of the program did, and the
// block that it concerns.

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <new>
#include <string>

#include "conformance/child.h"

// Of the library that is preloaded.
extern "C" {
__attribute__((weak)) void sdallocx(void* block, size_t size, int flags);
__attribute__((weak)) void free_sized(void* block, size_t size);
}

namespace {

template <typename T>
T* Hide(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}

char* Freed(size_t size) {
  auto* block = static_cast<char*>(malloc(size));
  free(block);
  return Hide(block);
}

// Pages that go back to the heap at once in hardened mode: more than it makes inaccessible.
constexpr size_t kHuge = 100'000'000;

// Frees a block again whose pages follow other free ones by then.
void FreeMergedAgain() {
  auto* before = Hide(static_cast<char*>(malloc(kHuge)));
  auto* block = Hide(static_cast<char*>(malloc(kHuge)));
  if (block < before) std::swap(block, before);
  free(block);
  free(before);
  free(Hide(block));
}

// Writes before a block whose neighbour is freed then.
void WriteBetween() {
  constexpr int kBlocks = 32;
  constexpr size_t kBytes = 8200;
  char* blocks[kBlocks];
  for (char*& block : blocks) block = Hide(static_cast<char*>(malloc(kBytes)));
  std::sort(blocks, blocks + kBlocks);
  for (int i = 0; i + 1 < kBlocks; ++i) {
    const size_t distance = blocks[i + 1] - blocks[i];
    if (distance > kBytes + kBytes / 4) continue;
    blocks[i + 1][-1] ^= 2;
    printf("0x%zx\n", reinterpret_cast<size_t>(blocks[i + 1]));
    return free(blocks[i]);
  }
}

struct Mistake {
  const char* name;
  void (*make)();
  // Parts of the message. Null where it depends on where blocks lie, or on which comes next.
  const char* by_default;
  const char* hardened;
  const char* debug;
};

const Mistake kMistakes[] = {
    {"sdallocx", [] { sdallocx(Freed(100), 100, 0); }, "double free of",
     "double free of * noticed by sdallocx\n", "Noticed by sdallocx in thread"},
    {"free_sized", [] { free_sized(Freed(100), 100); }, "double free of",
     "double free of * noticed by free_sized\n", "Noticed by free_sized in thread"},
    {"realloc to nothing", [] { Hide(realloc(Freed(100), 0)); }, "noticed by realloc:",
     "double free of * noticed by realloc\n", "Noticed by realloc in thread"},
    {"sdallocx, called", [] { sdallocx(Freed(100), 100, 0); },
     "    noticed by sdallocx:", "    noticed by sdallocx:", nullptr},
    {"free_sized, called", [] { free_sized(Freed(100), 100); },
     "    noticed by free_sized:", "    noticed by free_sized:", nullptr},
    {"delete without exceptions", [] { operator delete(Freed(100), std::nothrow); },
     "    noticed by operator delete:", nullptr, nullptr},
    {"overrun before malloc",
     [] {
       memset(Hide(malloc(100)), 0x5A, 4096);
       for (int i = 0; i < 100; ++i) Hide(malloc(100));
     },
     nullptr, nullptr, "tcmalloc: "},
    {"exit",
     [] {
       memset(Freed(100), 0x5A, 8);
       exit(0);
     },
     "noticed by the check at exit:", "noticed by the check at exit:",
     "Noticed by the check of all blocks at exit"},
    {"aligned new",
     [] {
       memset(Freed(128), 0x5A, 8);
       for (int i = 0; i < 3; ++i) Hide(operator new(128, std::align_val_t{128}));
     },
     "noticed by aligned operator new:", nullptr, nullptr},
    {"posix_memalign",
     [] {
       void* block = nullptr;
       memset(Freed(128), 0x5A, 8);
       for (int i = 0; i < 3; ++i) Hide(posix_memalign(&block, 128, 128) == 0 ? block : nullptr);
     },
     "noticed by posix_memalign:", nullptr, nullptr},
    {"between", WriteBetween, nullptr, "behind it was written to, or before the block at 0x",
     nullptr},
    {"before", [] { free(Hide(static_cast<char*>(malloc(100))) - 16); }, "invalid free of",
     "invalid free of", "it lies before the block at * 16 bytes from its start"},
    {"twice", [] { free(Freed(kHuge)); }, "double free of 0x", "double free of 0x",
     "has been already deallocated, a while ago"},
    {"twice, merged", FreeMergedAgain, nullptr, "double free of 0x", nullptr},
};

// Advice to use the mode that the process is in.
bool HasMootAdvice(const std::string& text) {
  const char* mode = getenv("TCMALLOC_MODE");
  const bool is_debug = mode != nullptr && strcmp(mode, "debug") == 0;
  return is_debug && text.find("run it under tcm debug") != std::string::npos;
}

// Returns true if `text` has the words of `pattern`, where a star stands for anything.
bool Has(const std::string& text, const char* pattern) {
  const char* star = strchr(pattern, '*');
  if (star == nullptr) return text.find(pattern) != std::string::npos;
  const size_t at = text.find(std::string(pattern, star));
  return at != std::string::npos && Has(text.substr(at), star + 2);
}

const char* Expected(const Mistake& mistake) {
  const char* mode = getenv("TCMALLOC_MODE");
  if (mode == nullptr) return mistake.by_default;
  return strcmp(mode, "hardened") == 0 ? mistake.hardened : mistake.debug;
}

}  // namespace

int main() {
  int wrong = 0;
  for (const Mistake& mistake : kMistakes) {
    const char* expected = Expected(mistake);
    if (expected == nullptr) continue;
    const std::string errors = tcmalloc::testing::RunInChild(mistake.make).errors;
    // None of these blocks has a size of 0.
    if (Has(errors, expected) && !Has(errors, " (0 bytes)") && !HasMootAdvice(errors)) continue;
    printf("%s: %s\n", mistake.name, errors.c_str());
    ++wrong;
  }
  return wrong == 0 ? 0 : 1;
}
