// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// What the heap holds after many blocks of one size grew one after the other. The memory of the
// smaller ones serves the larger ones: the heap holds a third more than lives at most, not the
// smaller ones as well.

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "conformance/malloc_api.h"
#include "figures.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kBytes = size_t{24} << 20;

void* Resize(void* block, size_t size) {
  void* const grown = Api().realloc(block, size);
  if (grown == nullptr) std::exit(1);
  std::memset(grown, 1, size);
  return grown;
}

int Run(size_t first, size_t second) {
  std::vector<void*> blocks(kBytes / first);
  for (const size_t size : {first, second}) {
    for (void*& block : blocks) block = Resize(block, size);
  }
  const size_t held = Figure("physical");
  const size_t in_use = Figure("in_use");
  for (void* block : blocks) Api().free(block);
  if (held <= in_use + in_use / 3) return 0;
  std::fprintf(stderr, "%zu blocks grew from %zu to %zu bytes: the heap held %zu for %zu\n",
               blocks.size(), first, second, held, in_use);
  return 1;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  return tcmalloc::testing::Run(strtoul(argv[1], nullptr, 10), strtoul(argv[2], nullptr, 10));
}
