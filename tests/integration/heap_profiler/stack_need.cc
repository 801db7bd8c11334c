// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Writes a heap profile in a thread, and looks at how much more of its stack that needs than other
// allocations: threads with the smallest stack allocate, too. The arguments are the end of the
// file's name, and the most bytes.

#include <gperftools/heap-profiler.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace {

constexpr size_t kStack = size_t{256} << 10;
constexpr uint8_t kUntouched = 0xa5;

void* Allocate(void*) {
  for (size_t i = 0; i < 1000; ++i) std::free(std::malloc(1000));
  return nullptr;
}

// Returns the bytes of its stack that a thread has written, 0 if it could not be started.
size_t StackOf(void* (*body)(void*)) {
  void* memory = mmap(nullptr, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return 0;
  std::memset(memory, kUntouched, kStack);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstack(&attributes, memory, kStack);
  pthread_t thread = {};
  if (pthread_create(&thread, &attributes, body, nullptr) != 0) return 0;
  pthread_join(thread, nullptr);
  const auto* bytes = static_cast<const uint8_t*>(memory);
  const auto* lowest =
      std::find_if(bytes, bytes + kStack, [](uint8_t b) { return b != kUntouched; });
  return static_cast<size_t>(bytes + kStack - lowest);
}

}  // namespace

int main(int count, char** words) {
  if (count != 3) return 2;
  const size_t before = StackOf(Allocate);
  const std::string prefix = "/tmp/stack_need." + std::to_string(getpid());
  HeapProfilerStart(prefix.c_str());
  const size_t with_dumps = StackOf(Allocate);
  HeapProfilerStop();
  const std::string file = prefix + ".0001" + words[1];
  if (before == 0 || unlink(file.c_str()) != 0) {
    std::fprintf(stderr, "no profile was written\n");
    return 1;
  }
  std::printf("%zu bytes, %zu with dumps\n", before, with_dumps);
  return with_dumps <= before + std::strtoul(words[2], nullptr, 10) ? 0 : 1;
}
