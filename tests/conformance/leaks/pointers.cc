// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program with blocks that are leaks under some rules of pointers: 7 bytes lost in each of 25
// stacks, 100 to which a word at an odd address leads, and 5000 of which only an inner address is
// known. Ends at once where the heap's addresses look like pairs of small numbers.

#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace {

constexpr int kStacks = 25;
constexpr size_t kFar = 2000;
constexpr uintptr_t kLowest = uintptr_t{1} << 37;

char odd[2 * sizeof(void*)] = {};
[[gnu::used]] char* volatile inside = nullptr;

__attribute__((noinline)) void* Get(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  if (reinterpret_cast<uintptr_t>(block) < kLowest) std::abort();
  return block;
}

__attribute__((noinline)) int LoseInStacks(int depth) {
  Get(7);
  const int deeper = depth > 1 ? LoseInStacks(depth - 1) : 0;
  asm volatile("" : : : "memory");
  return deeper + 1;
}

__attribute__((noinline)) void KeepAtOddAddress() {
  void* block = Get(100);
  std::memcpy(odd + 1, &block, sizeof(block));
}

__attribute__((noinline)) void KeepInside() { inside = static_cast<char*>(Get(5000)) + kFar; }

__attribute__((noinline)) void ClearStack() {
  volatile char bytes[8192];
  for (volatile char& byte : bytes) byte = 0;
}

}  // namespace

int main() {
  KeepAtOddAddress();
  KeepInside();
  const int stacks = LoseInStacks(kStacks);
  ClearStack();
  return stacks == kStacks && odd[1] + odd[2] + odd[3] != 0 ? 0 : 2;
}
