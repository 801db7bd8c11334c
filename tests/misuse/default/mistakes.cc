// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Mistakes that the default mode notices, or not: `mistakes CLASS SIZE` makes one in a program that
// is otherwise correct, and exits with 0 if nobody noticed. `mistakes --list` prints all classes.

#include <malloc.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

namespace {

using Size = std::size_t;

// Keeps the compiler from knowing what it could warn of, or leave out.
template <typename T>
T* Hide(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}

char* Malloc(Size n) {
  char* block = Hide(static_cast<char*>(std::malloc(n)));
  std::memset(block, 0x11, n);
  return block;
}
void Free(void* block) { std::free(Hide(block)); }
void Write(char* to, Size count) { std::memset(Hide(to), 0x5a, count); }
char* Freed(Size n) {
  char* block = Malloc(n);
  Free(block);
  return Hide(block);
}

// Lets free of this size take its fast path.
void WarmUp(Size n) {
  char* blocks[4];
  for (char*& block : blocks) block = Malloc(n);
  for (char* block : blocks) Free(block);
}

struct Mistake {
  const char* name;
  void (*make)(Size n);
};

const Mistake kMistakes[] = {
    {"overflow-4096", [](Size n) { Write(Malloc(n) + n, 4096); }},
    {"overflow-1-MiB", [](Size n) { Write(Malloc(n) + n, 1 << 20); }},
    {"overflow-of-last",
     [](Size n) {
       char* last = nullptr;
       for (int i = 0; i < 20; ++i) last = Malloc(n);
       Write(last + n, 64);
     }},
    {"underflow-of-first", [](Size n) { Write(Malloc(n) - 16, 16); }},
    {"write-after-free", [](Size n) { Write(Freed(n), 8); }},
    {"write-after-free-and-others",
     [](Size n) {
       char* blocks[50];
       for (char*& block : blocks) block = Malloc(n);
       for (char* block : blocks) Free(block);
       Write(blocks[10], 16);
     }},
    {"write-after-free-by-ended-thread",
     [](Size n) {
       char* block = Malloc(n);
       std::thread([block] { Free(block); }).join();
       Write(block, 8);
     }},
    {"double-free-after-one",
     [](Size n) {
       char* block = Malloc(n);
       char* other = Malloc(n);
       Free(block);
       Free(other);
       Free(block);
     }},
    {"double-free-after-many",
     [](Size n) {
       std::vector<char*> others;
       for (int i = 0; i < 300; ++i) others.push_back(Malloc(n));
       char* block = Freed(n);
       for (char* other : others) Free(other);
       Free(block);
     }},
    {"double-free-after-malloc",
     [](Size n) {
       char* block = Freed(n);
       char* other = Malloc(n);
       Free(block);
       Free(other);
     }},
    {"double-free-after-thread-exit",
     [](Size n) {
       char* block = Malloc(n);
       std::thread([block] { Free(block); }).join();
       Free(block);
     }},
    {"double-free-in-other-thread",
     [](Size n) {
       char* block = Malloc(n);
       std::thread other([block, n] {
         Free(Malloc(n));
         Free(block);
       });
       other.join();
       Free(block);
     }},
    {"double-free-after-realloc",
     [](Size n) {
       char* block = Malloc(n);
       char* moved = Hide(static_cast<char*>(std::realloc(block, 8 * n)));
       Free(block);
       Free(moved);
     }},
    {"free-of-end",
     [](Size n) {
       char* last = nullptr;
       for (int i = 0; i < 20; ++i) last = std::max(last, Malloc(n));
       Free(last + malloc_usable_size(last));
     }},
    {"free-of-end-and-malloc",
     [](Size n) {
       WarmUp(n);
       char* last = nullptr;
       for (int i = 0; i < 20; ++i) last = std::max(last, Malloc(n));
       Free(last + malloc_usable_size(last));
       for (int i = 0; i < 1000; ++i) Malloc(n);
     }},
    {"interior-8",
     [](Size n) {
       WarmUp(n + 16);
       Free(Malloc(n + 16) + 8);
     }},
    {"interior-16",
     [](Size n) {
       WarmUp(n + 16);
       Free(Malloc(n + 16) + 16);
     }},
    {"sized-delete-too-large", [](Size n) { operator delete(Hide(operator new(n)), 4 * n); }},
    {"sized-delete-too-small", [](Size n) { operator delete(Hide(operator new(n)), n / 4); }},
};

constexpr Size kSizes[] = {8, 100, 4096, 65536, 1048576};

int List() {
  for (const Mistake& mistake : kMistakes) {
    for (const Size size : kSizes) std::printf("%s %zu\n", mistake.name, size);
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return List();
  if (argc != 3) return 2;
  for (const Mistake& mistake : kMistakes) {
    if (std::strcmp(mistake.name, argv[1]) != 0) continue;
    // The heap has other blocks, too.
    const std::vector<std::string> others(100, std::string(200, 'x'));
    mistake.make(std::strtoul(argv[2], nullptr, 10));
    return 0;
  }
  return 2;
}
