// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program with blocks that are leaks in some modes of the leak checker: 11 bytes lost before
// main, 22 lost in a destructor, 33 that a global variable keeps, and 44 that a function has.

#include <cstdio>
#include <cstdlib>

namespace {

__attribute__((noinline)) void* Get(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

struct Loser {
  __attribute__((noinline)) Loser() { Get(11); }
  ~Loser() { block = nullptr; }

  void* volatile block = nullptr;
};

[[gnu::used]] Loser loser;
[[gnu::used]] void* volatile global = nullptr;

}  // namespace

int main() {
  void* volatile local = Get(44);
  loser.block = Get(22);
  global = Get(33);
  volatile char bytes[4096];
  for (volatile char& byte : bytes) byte = 0;
  std::exit(local != nullptr ? 0 : 2);
}
