// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An allocator that is loaded when more thread keys are in use than libc has room for in a thread's
// own record: libc allocates for each thread that tells it of its cache. Every thread gets a cache.
// Usage: many_keys <library>

#include <dlfcn.h>
#include <pthread.h>

#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

#include "stress/threads/workload.h"

namespace {

constexpr int kKeys = 40;
constexpr int kThreads = 600;

template <typename Function>
Function Find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  PROGRAM_CHECK(symbol != nullptr);
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

int main(int argc, char** argv) {
  PROGRAM_CHECK(argc == 2);
  for (int i = 0; i < kKeys; ++i) {
    pthread_key_t key = 0;
    PROGRAM_CHECK(pthread_key_create(&key, nullptr) == 0);
  }
  void* library = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);
  PROGRAM_CHECK(library != nullptr);
  const auto allocate = Find<void* (*)(size_t)>(library, "tc_malloc");
  const auto deallocate = Find<void (*)(void*)>(library, "tc_free");
  const auto get =
      Find<int (*)(const char*, size_t*)>(library, "MallocExtension_GetNumericProperty");
  // So many threads start at once that some are served without a cache at first: they go on until
  // all have one. Whoever never gets one makes the test run out of time.
  std::atomic<bool> all_have_one{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      while (!all_have_one) {
        deallocate(allocate(100));
        std::this_thread::yield();
      }
    });
  }
  for (size_t caches = 0; caches < static_cast<size_t>(kThreads); std::this_thread::yield()) {
    PROGRAM_CHECK(get("tcmalloc.thread_cache_count", &caches) != 0);
  }
  all_have_one = true;
  for (std::thread& thread : threads) thread.join();
  return 0;
}
