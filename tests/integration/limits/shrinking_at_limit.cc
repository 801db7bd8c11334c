// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Fills the heap up to its limit, and lets blocks of all lengths shrink then. None may fail, and
// none may lose what is kept of it. The environment sets the limit and the mode.

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "integration/limits/require.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kSizes[] = {16, 40, 100, 500, 3000, 20'000, 100'000, 300'000, 1'000'000};

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

// Lets `block`, which has `size` bytes, shrink in steps.
char* Shrink(char* block, Size size) {
  const auto mark = static_cast<char>(size % 101);
  std::memset(block, mark, size);
  for (const Size less : {size * 9 / 10, size / 3, size / 20, Size{1}}) {
    if (less == 0) continue;
    block = static_cast<char*>(std::realloc(block, less));
    Require(block != nullptr, "a block shrinks", less, size);
    RequireFilled(block, less, mark);
  }
  return block;
}

void Run() {
  std::vector<char*> shrinking;
  for (const Size size : kSizes) shrinking.push_back(static_cast<char*>(std::malloc(size)));
  void* others = nullptr;
  for (const Size size : {1'000'000, 100'000, 10'000, 1000, 100, 16}) Exhaust(size, &others);
  for (Size i = 0; i < shrinking.size(); ++i) shrinking[i] = Shrink(shrinking[i], kSizes[i]);
  FreeAll(others);
  for (char* block : shrinking) std::free(block);
}

}  // namespace
}  // namespace tcmalloc::testing

int main() {
  tcmalloc::testing::Run();
  return 0;
}
