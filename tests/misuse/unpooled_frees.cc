// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode, what threads without a pool free serves threads that have one: it does not stay
// in transfer caches for ever.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <thread>
#include <vector>

namespace {

using GetNumericProperty = int(const char*, size_t*);

constexpr size_t kMostBytes = size_t{256} << 10;
constexpr int kRounds = 100;
constexpr int kBlocks = 4000;
constexpr int kOwners = 8;  // threads that get a pool

}  // namespace

int main() {
  auto* get = reinterpret_cast<GetNumericProperty*>(
      dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty"));
  if (get == nullptr) return 2;
  for (int i = 0; i < kOwners; ++i) std::thread([] { free(malloc(1)); }).join();
  std::vector<void*> blocks;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBlocks; ++i) blocks.push_back(malloc(1 + i * 131 % 512));
    std::thread([&blocks] {
      for (void* block : blocks) free(block);
    }).join();
    blocks.clear();
  }
  // The rest of the last round has gone when as much is allocated again.
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(malloc(1 + i * 131 % 512));
  size_t bytes = 0;
  if (get("tcmalloc.transfer_cache_free_bytes", &bytes) == 0) return 3;
  printf("%zu bytes in transfer caches\n", bytes);
  for (void* block : blocks) free(block);
  return bytes <= kMostBytes ? 0 : 1;
}
