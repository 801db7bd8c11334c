// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Fills the heap up to its limit, and lets blocks of all lengths shrink then. None may fail, none
// may lose what is kept of it, and each may be freed with the size that it has then. The
// environment sets the limit and the mode.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "integration/limits/require.h"

extern "C" __attribute__((weak)) void free_sized(void* block, size_t size);

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kSizes[] = {16, 40, 100, 500, 3000, 20'000, 100'000, 300'000, 1'000'000, 3'000'000};
constexpr Size kAlignment = 64;

struct Shrinking {
  char* block;
  Size size;
};

// Takes blocks of `size` bytes, linked through their first words, until there is no memory.
void Exhaust(Size size, void** blocks) {
  while (void* const block = std::malloc(size)) {
    std::memcpy(block, blocks, sizeof(void*));
    *blocks = block;
  }
}

void FreeAll(void* blocks) {
  while (blocks != nullptr) {
    void* const block = blocks;
    std::memcpy(&blocks, block, sizeof(void*));
    std::free(block);
  }
}

void RequireFilled(const char* block, Size size, char mark) {
  for (Size i = 0; i < size; ++i) Require(block[i] == mark, "contents of a shrunk block", i, size);
}

// Lets a block shrink by steps, to `last` bytes.
char* Shrink(Shrinking shrinking, Size last) {
  const Size size = shrinking.size;
  const auto mark = static_cast<char>(size % 101);
  char* block = shrinking.block;
  std::memset(block, mark, size);
  for (const Size less : {size * 9 / 10, size / 3, size / 20, Size{1}}) {
    if (less < last) continue;
    block = static_cast<char*>(std::realloc(block, less));
    Require(block != nullptr, "a block shrinks", less, size);
    RequireFilled(block, less, mark);
  }
  return block;
}

void Run() {
  std::vector<Shrinking> all;
  for (const Size size : kSizes) {
    all.push_back({static_cast<char*>(std::malloc(size)), size});
    all.push_back({static_cast<char*>(std::aligned_alloc(kAlignment, size)), size});
    all.push_back({static_cast<char*>(std::malloc(size)), size});
  }
  void* others = nullptr;
  for (const Size size : {1'000'000, 100'000, 10'000, 1000, 100, 16}) Exhaust(size, &others);
  // The last one of each size stays longer.
  const auto last = [&](Size i) { return i % 3 == 2 ? all[i].size * 9 / 10 : 1; };
  for (Size i = 0; i < all.size(); ++i) all[i].block = Shrink(all[i], last(i));
  for (Size i = 0; i < all.size(); ++i) free_sized(all[i].block, last(i));
  FreeAll(others);
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
