// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Prints which files its malloc and its operator new come from, in one line:
//   malloc: <file>; new: <file>; tc_version: <yes or no>
// In a static program the files are "unknown".

#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

extern "C" const char* tc_version(int* major, int* minor, const char** patch) __attribute__((weak));

namespace {

struct alignas(128) Aligned {
  char bytes[300];
};

void UseHeap() {
  std::map<std::string, std::vector<int>> map;
  for (int i = 0; i < 5000; ++i) map[std::to_string(i % 97) + " as a long key"].push_back(i);
  const auto aligned = std::make_unique<Aligned[]>(10);
  if (reinterpret_cast<std::size_t>(aligned.get()) % 128 != 0) abort();
  std::thread([] { std::string(100'000, 'x').append("y"); }).join();
  try {
    throw std::runtime_error(std::string(200, 'e'));
  } catch (const std::exception& error) {
    if (std::strlen(error.what()) != 200) abort();
  }
  try {
    // Volatile, or the compiler may remove the allocation.
    void* volatile huge = ::operator new(std::size_t{1} << 62);
    static_cast<void>(huge);
    abort();
  } catch (const std::bad_alloc&) {
  }
}

const char* FileOf(const char* symbol) {
#ifdef FULLY_STATIC
  static_cast<void>(symbol);
  return "unknown";
#else
  Dl_info info = {};
  void* address = dlsym(RTLD_DEFAULT, symbol);
  if (address == nullptr || dladdr(address, &info) == 0) return "unknown";
  const char* slash = std::strrchr(info.dli_fname, '/');
  return slash == nullptr ? info.dli_fname : slash + 1;
#endif
}

}  // namespace

int main() {
  UseHeap();
  std::printf("malloc: %s; new: %s; tc_version: %s\n", FileOf("malloc"), FileOf("_Znwm"),
              tc_version == nullptr ? "no" : "yes");
  return 0;
}
