// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Leaves blocks for the commands of gdb to find, and stops in Stop. With an argument, frees a block
// twice, which is noticed when its span has drained.

#include <malloc.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <thread>

extern "C" {
// Of the library that is preloaded.
__attribute__((weak)) int MallocExtension_GetNumericProperty(const char* property,
                                                             std::size_t* value);

// Read by check_gdb.py.
constexpr int kBlocks = 24;
void* live[kBlocks];
void* small[10000];
void* freed[kBlocks];
void* large;
void* freed_large;
void* freed_at_random;
void* never_used;
std::size_t figures[7];

__attribute__((noinline)) void Stop() { asm volatile("" ::: "memory"); }
}

namespace {

constexpr std::size_t kSizes[] = {8, 24, 100, 1000, 5000, 40000};
constexpr int kOthers = 3000;

// Fills caches, transfer caches and central lists with blocks of some sizes.
void FreeMany() {
  static void* others[kOthers];
  for (int i = 0; i < kOthers; ++i) others[i] = std::malloc(kSizes[i % 4]);
  for (void* block : others) std::free(block);
}

// Frees so many blocks at random that a thread sorts most of them by pages.
void FreeAtRandom() {
  constexpr std::size_t kBlocksOfRandom = 10007;
  static void* others[kBlocksOfRandom];
  for (void*& block : others) block = std::malloc(100);
  for (std::size_t i = 0; i < kBlocksOfRandom; ++i) std::free(others[i * 7919 % kBlocksOfRandom]);
  freed_at_random = others[kBlocksOfRandom / 2 * 7919 % kBlocksOfRandom];
}

void Allocate() {
  for (int i = 0; i < kBlocks; ++i) {
    const std::size_t size = kSizes[static_cast<std::size_t>(i) % std::size(kSizes)];
    live[i] = std::malloc(size);
    freed[i] = std::malloc(size);
  }
  // So many that some are samples in the check of twins.
  for (void*& block : small) block = std::malloc(100);
  large = std::malloc(1 << 20);
  freed_large = std::malloc(3 << 20);
}

// The figures come last, because everything else may allocate.
void ReadFigures() {
  constexpr const char* kNames[] = {
      "generic.current_allocated_bytes",    "generic.heap_size",
      "tcmalloc.pageheap_free_bytes",       "tcmalloc.central_cache_free_bytes",
      "tcmalloc.transfer_cache_free_bytes", "tcmalloc.thread_cache_free_bytes",
      "tcmalloc.pageheap_unmapped_bytes",
  };
  if (MallocExtension_GetNumericProperty == nullptr) return;
  for (std::size_t i = 0; i < std::size(kNames); ++i) {
    MallocExtension_GetNumericProperty(kNames[i], &figures[i]);
  }
}

// The write hides that the block is in the list of the thread.
void FreeTwice() {
  constexpr int kTwice = 20;
  void* blocks[64];
  for (void*& block : blocks) block = std::malloc(1024);
  freed[0] = blocks[kTwice];
  std::free(blocks[kTwice]);
  std::memset(blocks[kTwice], 0x41, sizeof(void*));
  for (int i = 0; i < 64; ++i) {
    if (i != kTwice) std::free(blocks[i]);
  }
  std::free(blocks[kTwice]);
  malloc_trim(0);
}

}  // namespace

int main(int argc, char**) {
  if (argc > 1) std::thread(FreeTwice).join();
  std::thread(FreeMany).join();
  FreeMany();
  Allocate();
  FreeAtRandom();
  // Half of them by another thread, whose cache keeps them.
  std::thread([] {
    for (int i = 0; i < kBlocks; i += 2) std::free(freed[i]);
  }).join();
  for (int i = 1; i < kBlocks; i += 2) std::free(freed[i]);
  std::free(freed_large);
  ReadFigures();
  Stop();
}
