// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Loads the allocator, as a plug-in that links it would, into a program that runs on another
// malloc, has threads, and uses thread-local variables of its own: the library must fit into what
// libc has left of static TLS, must leave the program's malloc alone, and must survive dlclose.
// With a second argument, libraries that were loaded earlier have taken nearly all of that. Usage:
// dlopen_allocator PATH_OF_LIBRARY [PATH_OF_FILLER]

#include <dlfcn.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <latch>
#include <string>
#include <thread>
#include <vector>

#include "integration/lifecycle/static_tls.h"
#include "stress/threads/workload.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 4;

const char* library_path = nullptr;
const char* filler_path = nullptr;
void* (*allocate)(size_t) = nullptr;
void (*deallocate)(void*) = nullptr;

// Static TLS of the program. It is part of the initial image, not of the surplus that libc keeps
// for libraries loaded later, but a library that asks for more than the surplus cannot load.
thread_local std::array<char, 2048> program_tls{1};

std::string FileOf(const void* address) {
  Dl_info info = {};
  PROGRAM_CHECK(dladdr(address, &info) != 0);
  return info.dli_fname;
}

std::string FileOfMalloc() { return FileOf(reinterpret_cast<const void*>(&malloc)); }

template <typename Function>
Function Find(void* library, const char* name) {
  void* symbol = dlsym(library, name);
  PROGRAM_CHECK(symbol != nullptr);
  PROGRAM_CHECK(FileOf(symbol) == library_path);
  return reinterpret_cast<Function>(symbol);
}

void* Load() {
  void* library = dlopen(library_path, RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) {
    fprintf(stderr, "%s\n", dlerror());
    exit(1);
  }
  return library;
}

void UseLoadedAllocator(unsigned seed) {
  std::vector<unsigned char*> blocks;
  for (size_t i = 0; i < 2000; ++i) {
    const size_t size = 1 + i * (seed + 1) % 5000;
    auto* block = static_cast<unsigned char*>(allocate(size));
    PROGRAM_CHECK(block != nullptr);
    memset(block, static_cast<int>(i % 251), size);
    blocks.push_back(block);
    if (i % 3 != 0) continue;
    deallocate(blocks.back());
    blocks.pop_back();
  }
  for (unsigned char* block : blocks) deallocate(block);
  PROGRAM_CHECK(program_tls[0] == 1);
}

int Body(Progress& progress) {
  const std::string malloc_before = FileOfMalloc();
  PROGRAM_CHECK(malloc_before != library_path);
  void* own_block = malloc(1000);
  if (filler_path != nullptr) printf("%d fillers\n", FillStaticTls(filler_path));

  // These threads exist before the library and must be served as well.
  std::latch loaded(1);
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < kThreads; ++i) {
    threads.emplace_back([i, &loaded, &progress] {
      loaded.wait();
      UseLoadedAllocator(i);
      progress.Advance();
    });
  }
  void* library = Load();
  allocate = Find<void* (*)(size_t)>(library, "tc_malloc");
  deallocate = Find<void (*)(void*)>(library, "tc_free");
  loaded.count_down();
  UseLoadedAllocator(kThreads);
  for (std::thread& thread : threads) thread.join();
  for (unsigned i = 0; i < 100; ++i) {
    std::thread(UseLoadedAllocator, i).join();
    progress.Advance();
  }

  PROGRAM_CHECK(FileOfMalloc() == malloc_before);
  free(own_block);
  void* block_across = allocate(100);
  std::thread late([] { UseLoadedAllocator(1); });
  PROGRAM_CHECK(dlclose(library) == 0);
  late.join();
  library = Load();
  deallocate(block_across);
  PROGRAM_CHECK(dlclose(library) == 0);
  printf("%s works beside %s\n", library_path, malloc_before.c_str());
  return 0;
}

}  // namespace
}  // namespace tcmalloc::testing

int main(int argc, char** argv) {
  PROGRAM_CHECK(argc > 1);
  // As the loader reports it.
  char* resolved = realpath(argv[1], nullptr);
  PROGRAM_CHECK(resolved != nullptr);
  tcmalloc::testing::library_path = resolved;
  if (argc > 2) tcmalloc::testing::filler_path = argv[2];
  return tcmalloc::testing::RunSupervised("dlopen_allocator", tcmalloc::testing::Body);
}
