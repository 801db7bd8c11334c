// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A corpus of mistakes: `misuse CLASS SIZE` makes one, in a program that is otherwise correct, and
// exits with 0 if nobody noticed. `misuse --list` prints all classes with their sizes.

#include <malloc.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <thread>
#include <vector>

// Of the library that is preloaded.
extern "C" {
__attribute__((weak)) void free_sized(void* block, size_t size);
__attribute__((weak)) void free_aligned_sized(void* block, size_t alignment, size_t size);
__attribute__((weak)) void sdallocx(void* block, size_t size, int flags);
}

namespace {

using Size = std::size_t;

// Keeps the compiler from knowing what it could warn of, or leave out.
template <typename T>
T* Hide(T* pointer) {
  asm volatile("" : "+r"(pointer)::"memory");
  return pointer;
}

char* New(Size n) { return Hide(static_cast<char*>(operator new(n))); }
char* NewArray(Size n) { return Hide(static_cast<char*>(operator new[](n))); }
char* Malloc(Size n) { return Hide(static_cast<char*>(std::malloc(n))); }
// Returns a block that begins within a page of the library's, whatever their size, if it is small.
char* MallocWithinPage(Size n) {
  constexpr uintptr_t kSmallestPage = 4096;
  constexpr int kMostTries = 8;
  char* block = Malloc(n);
  for (int i = 0; i < kMostTries && reinterpret_cast<uintptr_t>(block) % kSmallestPage == 0; ++i) {
    block = Malloc(n);
  }
  return block;
}

void Write(char* to, Size count) {
  for (Size i = 0; i < count; ++i) Hide(to)[i] = static_cast<char>(0x5A + i);
}

// Lets other blocks come and go.
void Churn(Size n, int times) {
  for (int i = 0; i < times; ++i) std::free(Malloc(n));
}

char* AllocatedAndFreed(Size n) {
  char* block = Malloc(n);
  Write(block, n);
  std::free(block);
  return Hide(block);
}

// Makes a mistake in a child of fork, and ends as it does.
template <typename Mistake>
void InChild(Mistake mistake) {
  const pid_t child = fork();
  if (child == 0) {
    mistake();
    std::exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFSIGNALED(status)) return;
  signal(WTERMSIG(status), SIG_DFL);
  raise(WTERMSIG(status));
}

char static_bytes[256];
char* freed_in_handler;

struct Destroyed {
  int value;
  ~Destroyed() { Hide(this)->value = 0; }
};

struct Misuse {
  const char* name;
  bool of_any_size;
  void (*make)(Size n);
};

constexpr std::align_val_t kAlignment{64};

const Misuse kMisuses[] = {
    // Writes beside a block.
    {"overflow-1", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p + n, 1);
       std::free(p);
     }},
    {"overflow-8", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p + n, 8);
       std::free(p);
     }},
    {"overflow-32", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p + n, 32);
       std::free(p);
     }},
    {"overflow-new", true,
     [](Size n) {
       char* p = New(n);
       Write(p + n, 1);
       operator delete(p);
     }},
    {"overflow-calloc", true,
     [](Size n) {
       char* p = Hide(static_cast<char*>(std::calloc(1, n)));
       Write(p + n, 4);
       std::free(p);
     }},
    {"overflow-aligned", true,
     [](Size n) {
       char* p = Hide(static_cast<char*>(std::aligned_alloc(64, n)));
       Write(p + n, 8);
       std::free(p);
     }},
    {"overflow-realloc", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p + n, 1);
       std::free(std::realloc(p, 2 * n));
     }},
    {"overflow-kept", true, [](Size n) { Write(Malloc(n) + n, 1); }},
    {"overflow-by-zero", true,
     [](Size n) {
       char* p = Malloc(n);
       p[n] = '\0';
       std::free(p);
     }},
    {"overflow-of-shortened", true,
     [](Size n) {
       const Size shorter = n - n / 4;
       char* p = Hide(static_cast<char*>(std::realloc(Malloc(n), shorter)));
       Write(p + shorter, 1);
       std::free(p);
     }},
    {"overflow-before-realloc", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p + n, 1);
       std::free(std::realloc(p, 2 * n));
     }},
    {"overflow-of-sized", true,
     [](Size n) {
       char* p = New(n);
       Write(p + n, 1);
       operator delete(p, n);
     }},
    {"underflow-of-aligned", true,
     [](Size n) {
       char* p = Hide(static_cast<char*>(memalign(64, n)));
       Write(p - 1, 1);
       std::free(p);
     }},
    {"underflow-1", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p - 1, 1);
       std::free(p);
     }},
    {"underflow-8", true,
     [](Size n) {
       char* p = Malloc(n);
       Write(p - 8, 8);
       std::free(p);
     }},
    {"underflow-kept", true, [](Size n) { Write(Malloc(n) - 4, 4); }},
    // Nothing looks at the block before once more.
    {"underflow-until-free", true,
     [](Size n) {
       char* p = MallocWithinPage(n);
       Write(p - 1, 1);
       std::free(p);
       _exit(0);
     }},
    // Uses of free blocks.
    {"write-after-free", true, [](Size n) { Write(AllocatedAndFreed(n), 1); }},
    {"write-after-free-all", true, [](Size n) { Write(AllocatedAndFreed(n), n); }},
    {"write-after-free-last", true, [](Size n) { Write(AllocatedAndFreed(n) + n - 1, 1); }},
    {"write-after-free-then-churn", true,
     [](Size n) {
       Write(AllocatedAndFreed(n), 8);
       Churn(n, 3000);
     }},
    {"write-after-free-in-thread", true,
     [](Size n) {
       char* p = AllocatedAndFreed(n);
       std::thread([p] { Write(p, 8); }).join();
     }},
    {"write-after-free-of-thread", true,
     [](Size n) {
       char* p = Malloc(n);
       std::thread([p] { std::free(p); }).join();
       Write(Hide(p), 8);
     }},
    {"write-after-free-of-zeros", true,
     [](Size n) { std::memset(AllocatedAndFreed(n), 0, n < 16 ? n : 16); }},
    {"write-after-free-in-child", true,
     [](Size n) {
       char* p = AllocatedAndFreed(n);
       InChild([p] { Write(p, 8); });
     }},
    {"write-after-realloc", true,
     [](Size n) {
       char* p = Malloc(n);
       char* q = Hide(static_cast<char*>(std::realloc(p, 8 * n)));
       Write(Hide(p), 1);
       std::free(q);
     }},
    {"follow-freed-pointer", true,
     [](Size n) {
       char* p = Malloc(n);
       std::memcpy(p, &p, sizeof(p));
       std::free(p);
       char* next;
       std::memcpy(&next, Hide(p), sizeof(next));
       Write(next, 1);
     }},
    {"follow-fresh-pointer", true,
     [](Size n) {
       char* next;
       std::memcpy(&next, Malloc(n), sizeof(next));
       if (next != nullptr) Write(next, 1);
     }},
    // Blocks that are freed twice.
    {"double-free", true, [](Size n) { std::free(AllocatedAndFreed(n)); }},
    {"double-free-another-between", true,
     [](Size n) {
       char* p = Malloc(n);
       char* q = Malloc(n);
       std::free(p);
       std::free(q);
       std::free(Hide(p));
     }},
    {"double-free-in-thread", true,
     [](Size n) {
       char* p = AllocatedAndFreed(n);
       std::thread([p] { std::free(Hide(p)); }).join();
     }},
    {"double-free-after-hundred", true,
     [](Size n) {
       std::vector<char*> others;
       for (int i = 0; i < 100; ++i) others.push_back(Malloc(n));
       char* p = AllocatedAndFreed(n);
       for (char* other : others) std::free(other);
       std::free(p);
     }},
    {"double-free-after-realloc", true,
     [](Size n) {
       char* p = Malloc(n);
       char* q = Hide(static_cast<char*>(std::realloc(p, 8 * n)));
       std::free(Hide(p));
       std::free(q);
     }},
    {"double-free-in-child", true,
     [](Size n) {
       char* p = AllocatedAndFreed(n);
       InChild([p] { std::free(p); });
     }},
    {"double-free-in-handler", true,
     [](Size n) {
       freed_in_handler = AllocatedAndFreed(n);
       signal(SIGUSR1, [](int) { std::free(freed_in_handler); });
       raise(SIGUSR1);
     }},
    {"double-free-at-exit", true,
     [](Size n) {
       freed_in_handler = AllocatedAndFreed(n);
       std::atexit([] { std::free(freed_in_handler); });
     }},
    {"double-free-after-trim", true,
     [](Size n) {
       char* p = AllocatedAndFreed(n);
       malloc_trim(0);
       std::free(p);
     }},
    {"double-free-aligned", true,
     [](Size n) {
       char* p = Hide(static_cast<char*>(memalign(256, n)));
       std::free(p);
       std::free(Hide(p));
     }},
    {"double-free-sized", true, [](Size n) { free_sized(AllocatedAndFreed(n), n); }},
    {"free-then-delete", true, [](Size n) { operator delete(AllocatedAndFreed(n)); }},
    {"double-delete-sized", true,
     [](Size n) {
       char* p = New(n);
       operator delete(p, n);
       operator delete(Hide(p), n);
     }},
    {"double-delete", true,
     [](Size n) {
       char* p = New(n);
       operator delete(p);
       operator delete(Hide(p));
     }},
    {"double-delete-array", true,
     [](Size n) {
       char* p = NewArray(n);
       operator delete[](p);
       operator delete[](Hide(p));
     }},
    {"realloc-freed", true, [](Size n) { std::free(std::realloc(AllocatedAndFreed(n), 2 * n)); }},
    {"realloc-freed-same", true, [](Size n) { std::free(std::realloc(AllocatedAndFreed(n), n)); }},
    {"usable-size-freed", true, [](Size n) { malloc_usable_size(AllocatedAndFreed(n)); }},
    // Pointers that malloc never gave.
    {"free-interior", true, [](Size n) { std::free(Malloc(n + 16) + 16); }},
    {"free-middle", true, [](Size n) { std::free(Malloc(2 * n + 16) + (n + 15) / 16 * 16); }},
    {"free-misaligned", true, [](Size n) { std::free(Malloc(n) + 1); }},
    {"free-before", true, [](Size n) { std::free(Malloc(n) - 16); }},
    {"free-behind", true, [](Size n) { std::free(Malloc(n) + n); }},
    {"delete-interior-sized", true, [](Size n) { operator delete(New(n + 16) + 16, n); }},
    {"usable-size-interior", true, [](Size n) { malloc_usable_size(Malloc(n + 16) + 16); }},
    {"realloc-stack", false,
     [](Size n) {
       alignas(16) char local[64];
       std::free(std::realloc(Hide(local), n));
     }},
    {"usable-size-stack", false,
     [](Size) {
       alignas(16) char local[64];
       malloc_usable_size(Hide(local));
     }},
    {"delete-stack", false,
     [](Size n) {
       alignas(16) char local[64];
       operator delete(Hide(local), n);
     }},
    {"realloc-interior", true, [](Size n) { std::free(std::realloc(Malloc(n + 16) + 16, n)); }},
    {"free-stack", false,
     [](Size) {
       alignas(16) char bytes[64];
       std::free(Hide(bytes + 16));
     }},
    {"free-static", false, [](Size) { std::free(Hide(static_bytes + 16)); }},
    {"free-code", false, [](Size) { std::free(Hide(reinterpret_cast<char*>(&Churn))); }},
    {"free-wild", false, [](Size) { std::free(Hide(reinterpret_cast<char*>(0x123456789ab0))); }},
    {"free-not-canonical", false,
     [](Size) { std::free(Hide(reinterpret_cast<char*>(0xABABABABABABABB0))); }},
    {"free-foreign", true,
     [](Size n) {
       void* map = mmap(nullptr, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
       std::free(Hide(static_cast<char*>(map)));
     }},
    // Families.
    {"malloc-delete", true, [](Size n) { operator delete(Malloc(n)); }},
    {"malloc-delete-array", true, [](Size n) { operator delete[](Malloc(n)); }},
    {"new-free", true, [](Size n) { std::free(New(n)); }},
    {"new-delete-array", true, [](Size n) { operator delete[](New(n)); }},
    {"new-array-free", true, [](Size n) { std::free(NewArray(n)); }},
    {"new-array-delete", true, [](Size n) { operator delete(NewArray(n)); }},
    {"new-array-of-destroyed-delete", true, [](Size n) { delete Hide(new Destroyed[n / 4]); }},
    {"aligned-new-free", true,
     [](Size n) { std::free(Hide(static_cast<char*>(operator new(n, kAlignment)))); }},
    {"new-free-sized", true, [](Size n) { free_sized(New(n), n); }},
    {"new-realloc", true, [](Size n) { std::free(std::realloc(New(n), 2 * n)); }},
    // Sizes and alignments.
    {"sized-delete-smaller", true, [](Size n) { operator delete(New(n), n / 2); }},
    {"sized-delete-larger", true, [](Size n) { operator delete(New(n), 2 * n); }},
    {"sized-delete-of-nothing", true, [](Size n) { operator delete(New(n), Size{0}); }},
    {"free-sized-larger", true, [](Size n) { free_sized(Malloc(n), 2 * n); }},
    {"sdallocx-larger", true, [](Size n) { sdallocx(Malloc(n), 2 * n, 0); }},
    {"free-aligned-sized-other", true, [](Size n) { free_aligned_sized(memalign(64, n), 256, n); }},
    {"sized-delete-array", true, [](Size n) { operator delete[](NewArray(n), n + 8); }},
    {"aligned-delete-other", true,
     [](Size n) { operator delete(operator new(n, kAlignment), std::align_val_t{128}); }},
    {"aligned-delete-plain-new", true, [](Size n) { operator delete(New(n), kAlignment); }},
    {"aligned-new-plain-delete", true,
     [](Size n) { operator delete(operator new(n, kAlignment)); }},
    {"aligned-new-sized-delete", true,
     [](Size n) { operator delete(operator new(n, kAlignment), n); }},
    {"aligned-new-array-plain-delete", true,
     [](Size n) { operator delete[](operator new[](n, kAlignment)); }},
    {"aligned-delete-wrong-size", true,
     [](Size n) { operator delete(operator new(n, kAlignment), 2 * n, kAlignment); }},
};

constexpr Size kSizes[] = {8, 100, 4096, 65536, 1048576};

int List() {
  for (const Misuse& misuse : kMisuses) {
    for (const Size size : kSizes) {
      std::printf("%s %zu\n", misuse.name, size);
      if (!misuse.of_any_size) break;
    }
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "--list") == 0) return List();
  if (argc != 3) return 2;
  for (const Misuse& misuse : kMisuses) {
    if (std::strcmp(misuse.name, argv[1]) != 0) continue;
    // The heap has other blocks, too.
    std::vector<std::string> others(100, std::string(200, 'x'));
    misuse.make(std::strtoul(argv[2], nullptr, 10));
    return 0;
  }
  return 2;
}
