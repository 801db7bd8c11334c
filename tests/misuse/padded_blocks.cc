// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode: a program that asks for the size of every block gets a little more, all of
// which it may use, and says what it likes of that when it frees. Other programs do not.

#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <barrier>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "conformance/child.h"

// Of the library that is preloaded.
extern "C" {
__attribute__((weak)) size_t nallocx(size_t size, int flags);
__attribute__((weak)) void sdallocx(void* block, size_t size, int flags);
__attribute__((weak)) void free_sized(void* block, size_t size);
}

namespace {

using tcmalloc::testing::RunInChild;

constexpr size_t kSizes[] = {0,    1,     8,      15,      16,      20,      30,
                             31,   32,    63,     64,      100,     1000,    1023,
                             1024, 5'000, 70'000, 262'143, 262'144, 300'001, 1'000'000};

int wrong = 0;

void Expect(bool is_right, const char* what, size_t size) {
  if (is_right) return;
  printf("%zu bytes: %s\n", size, what);
  ++wrong;
}

size_t Pad(size_t size) { return size | 15; }

// Allocates `count` blocks, and asks for the size of every `step`th.
void Ask(int count, int step) {
  for (int i = 0; i < count; ++i) {
    void* block = malloc(static_cast<size_t>(i % 300));
    if (i % step == 0) malloc_usable_size(block);
    free(block);
  }
}

std::vector<char*> AllocateEach() {
  std::vector<char*> blocks;
  for (const size_t size : kSizes) {
    blocks.push_back(static_cast<char*>(malloc(size)));
    memset(blocks.back(), 'a', size);
  }
  return blocks;
}

void ExpectSizes(const std::vector<char*>& blocks, size_t (*expected)(size_t)) {
  for (size_t i = 0; i < blocks.size(); ++i) {
    Expect(malloc_usable_size(blocks[i]) == expected(kSizes[i]), "another size", kSizes[i]);
    Expect(nallocx(kSizes[i], 0) == Pad(kSizes[i]), "nallocx says another size", kSizes[i]);
  }
}

void UseAll(const std::vector<char*>& blocks) {
  for (char* block : blocks) memset(block, 'b', malloc_usable_size(block));
}

void FreeAsAsked(const std::vector<char*>& blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) free_sized(blocks[i], kSizes[i]);
}

void FreeAsEstimated(const std::vector<char*>& blocks) {
  for (size_t i = 0; i < blocks.size(); ++i) sdallocx(blocks[i], nallocx(kSizes[i], 0), 0);
}

void ExpectNoMove(size_t size) {
  for (void* block : {malloc(size), aligned_alloc(64, size)}) {
    const auto before = reinterpret_cast<uintptr_t>(block);
    block = realloc(block, std::max<size_t>(malloc_usable_size(block), 1));
    if (size != 0) {
      Expect(reinterpret_cast<uintptr_t>(block) == before, "moved to the size that it had", size);
    }
    free(block);
  }
}

void GrowAndShrink(size_t size) {
  auto* block = static_cast<char*>(malloc(size));
  memset(block, 'c', malloc_usable_size(block));
  const size_t used = malloc_usable_size(block);
  block = static_cast<char*>(realloc(block, used + 1));
  Expect(std::string(block, used) == std::string(used, 'c'), "realloc lost some", size);
  block = static_cast<char*>(realloc(block, size / 2 + 1));
  Expect(std::string(block, size / 2) == std::string(size / 2, 'c'), "a shrink lost some", size);
  memset(block, 'd', malloc_usable_size(block));
  free(block);
}

void ExpectZeroes(size_t size) {
  auto* block = static_cast<char*>(calloc(1, size));
  const size_t usable = malloc_usable_size(block);
  Expect(std::string(block, usable) == std::string(usable, '\0'), "not zero", size);
  free(block);
}

void ExpectNoticed(size_t size) {
  const std::string errors = RunInChild([size] {
                               auto* block = static_cast<char*>(malloc(size));
                               block[malloc_usable_size(block)] ^= 1;
                               free(block);
                             }).errors;
  Expect(errors.find("overflow") != std::string::npos, errors.c_str(), size);
}

void NewAndDelete(size_t size) {
  void* block = operator new(size);
  Expect(malloc_usable_size(block) == nallocx(size, 0), "nallocx says another size", size);
  memset(block, 'f', nallocx(size, 0));
  operator delete(block, size);
}

// Of blocks that were filled as a whole when they were freed, the program reads the fills alone.
void ExpectNoSecret(size_t size) {
  if (size > 500) return;
  auto* block = static_cast<unsigned char*>(malloc(size));
  memset(block, 'e', size);
  block = static_cast<unsigned char*>(realloc(block, size + 1));
  const size_t usable = malloc_usable_size(block);
  for (size_t i = std::max(size + 1, usable - usable % 16); i < usable; ++i) {
    Expect(block[i] == 0xAB || block[i] == 0xCD, "a byte of the canary", size);
  }
  free(block);
}

// Where new finds no memory at first, its block comes another way.
void* spare = nullptr;
void GiveUpSpare() {
  if (spare == nullptr) abort();
  free(std::exchange(spare, nullptr));
}
void NewByHandler(size_t size, void* (*allocate)(size_t), void (*release)(void*, size_t)) {
  const auto fill = [=] {
    spare = malloc(1 << 20);
    std::set_new_handler(GiveUpSpare);
    while (spare != nullptr) {
      void* block = allocate(size);
      if (spare == nullptr) release(block, size);
    }
  };
  const tcmalloc::testing::ChildResult child = RunInChild(fill);
  Expect(child.errors.empty(), child.errors.c_str(), size);
}

// A block that shrinks where there is no memory to move it is as short for who frees it.
void ShrinkAtLimit() {
  const tcmalloc::testing::ChildResult child = RunInChild([] {
    void* block = malloc(1'000'000);
    for (const size_t size : {1'000'000, 100'000, 10'000, 1'000, 100}) {
      while (malloc(size) != nullptr) {
      }
    }
    block = realloc(block, 400'000);
    if (malloc_usable_size(block) != Pad(400'000)) abort();
    free_sized(block, 400'000);
  });
  Expect(child.errors.empty(), child.errors.c_str(), 400'000);
}

void ExpectAlignedAsBefore(size_t size) {
  void* block = memalign(64, size);
  Expect(malloc_usable_size(block) == (size == 0 ? 1 : size), "an aligned block is padded", size);
  free(block);
}

}  // namespace

int main() {
  Ask(1'000'000, 100);
  for (const size_t size : kSizes) Expect(nallocx(size, 0) == size, "few asks pad", size);
  const std::vector<char*> unpadded[2] = {AllocateEach(), AllocateEach()};
  Ask(10'000, 1);
  for (const std::vector<char*>& blocks : unpadded) {
    ExpectSizes(blocks, [](size_t size) { return size; });
    UseAll(blocks);
  }
  FreeAsAsked(unpadded[0]);
  FreeAsEstimated(unpadded[1]);
  const std::vector<char*> padded[2] = {AllocateEach(), AllocateEach()};
  for (const std::vector<char*>& blocks : padded) {
    ExpectSizes(blocks, Pad);
    UseAll(blocks);
  }
  FreeAsAsked(padded[0]);
  FreeAsEstimated(padded[1]);
  for (const size_t size : kSizes) {
    ExpectNoMove(size);
    GrowAndShrink(size);
    ExpectZeroes(size);
    ExpectNoticed(size);
    NewAndDelete(size);
    ExpectAlignedAsBefore(size);
    ExpectNoSecret(size);
  }
  for (const size_t size : {20, 1'000, 5'000, 100'000}) {
    NewByHandler(
        size, [](size_t n) { return operator new(n); },
        [](void* block, size_t n) { operator delete(block, n); });
    NewByHandler(
        size, [](size_t n) { return operator new[](n, std::align_val_t{16}); },
        [](void* block, size_t n) { operator delete[](block, n, std::align_val_t{16}); });
  }
  ShrinkAtLimit();
  // Threads beyond the first few get their blocks another way, as long as the first ones live.
  constexpr int kOthers = 16;
  std::barrier all(kOthers);
  std::vector<std::thread> others;
  for (int i = 0; i < kOthers; ++i) {
    others.emplace_back([&all] {
      static std::mutex mutex;
      free(malloc(1));
      all.arrive_and_wait();
      const std::lock_guard<std::mutex> guard(mutex);
      for (const size_t size : kSizes) ExpectNoSecret(size);
    });
  }
  for (std::thread& other : others) other.join();
  return wrong == 0 ? 0 : 1;
}
