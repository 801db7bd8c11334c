// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode, what threads without a pool free serves threads that have one: it does not stay
// in transfer caches for ever.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include <barrier>
#include <thread>
#include <vector>

namespace {

using GetNumericProperty = int(const char*, size_t*);

constexpr size_t kMostBytes = size_t{256} << 10;
constexpr int kRounds = 100;
constexpr int kBlocks = 4000;
constexpr int kOwners = 8;  // threads that get a pool, and live

}  // namespace

int main() {
  auto* get = reinterpret_cast<GetNumericProperty*>(
      dlsym(RTLD_DEFAULT, "MallocExtension_GetNumericProperty"));
  if (get == nullptr) return 2;
  std::barrier begin(kOwners + 1);
  std::barrier end(kOwners + 1);
  std::vector<std::thread> owners;
  for (int i = 0; i < kOwners; ++i) {
    owners.emplace_back([&] {
      free(malloc(1));
      begin.arrive_and_wait();
      end.arrive_and_wait();
    });
  }
  begin.arrive_and_wait();
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
  end.arrive_and_wait();
  for (std::thread& owner : owners) owner.join();
  return bytes <= kMostBytes ? 0 : 1;
}
