// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads a library ten thousand times. Blocks cross its boundary in both directions
// and outlive it; every 50th time a thread ends while the library is loaded only for its sake.
// Usage: dlopen_storm PATH_OF_PLUGIN [loads]

#include <dlfcn.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "integration/lifecycle/plugin.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kWarmUpLoads = 1000;
// A leak of a hundred bytes per load shows; what the thread caches still grow by does not.
constexpr size_t kMaxGrowth = size_t{1024} * 1024;

const char* plugin_path = nullptr;
int loads_wanted = 10'000;

template <typename Function>
Function* Find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  PROGRAM_CHECK(symbol != nullptr);
  return reinterpret_cast<Function*>(symbol);
}

// Returns a block that the library, gone by then, has allocated.
char* LoadAndUnload(char tag) {
  void* library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
  PROGRAM_CHECK(library != nullptr);
  auto* make_block = Find<decltype(PluginMakeBlock)>(library, "PluginMakeBlock");
  auto* free_block = Find<decltype(PluginFreeBlock)>(library, "PluginFreeBlock");
  auto* own = static_cast<char*>(malloc(24));
  PROGRAM_CHECK(own != nullptr);
  memset(own, tag, 24);
  PROGRAM_CHECK(free_block(own, tag));
  char* kept = make_block(tag);
  PROGRAM_CHECK(kept != nullptr);
  PROGRAM_CHECK(dlclose(library) == 0);
  return kept;
}

void EndThreadAfterUnload() {
  std::thread([] {
    void* library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
    PROGRAM_CHECK(library != nullptr);
    Find<decltype(PluginTouchThreadLocal)>(library, "PluginTouchThreadLocal")();
    PROGRAM_CHECK(dlclose(library) == 0);
  }).join();
}

int Body(Progress& progress) {
  size_t resident_before = 0;
  for (int i = 0; i < kWarmUpLoads + loads_wanted; ++i) {
    if (i == kWarmUpLoads) resident_before = ResidentBytes();
    const auto tag = static_cast<char>('a' + i % 26);
    char* kept = LoadAndUnload(tag);
    PROGRAM_CHECK(kept[0] == tag && kept[23] == tag);
    free(kept);
    if (i % 50 == 0) EndThreadAfterUnload();
    progress.Advance();
  }
  const size_t resident_after = ResidentBytes();
  printf("%d loads after %d of warm-up: resident %zu KiB before, %zu KiB after\n", loads_wanted,
         kWarmUpLoads, resident_before / 1024, resident_after / 1024);
  if (resident_after <= resident_before + kMaxGrowth) return 0;
  fprintf(stderr, "resident memory may grow by %zu KiB only\n", kMaxGrowth / 1024);
  return 1;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  PROGRAM_CHECK(argc > 1);
  tcmalloc::testing::plugin_path = argv[1];
  if (argc > 2) tcmalloc::testing::loads_wanted = atoi(argv[2]);
  return tcmalloc::testing::RunSupervised("dlopen_storm", tcmalloc::testing::Body);
}
