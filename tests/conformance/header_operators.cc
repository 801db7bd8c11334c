// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program whose operators new and delete put a header before each block, and that replaces no
// form with a size or without an exception. The C++ standard lets these lead to the program's own,
// so each block that any form frees has a header.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr std::uint64_t kMagic = 0x6865616465720001;
constexpr std::size_t kPlainHeader = 16;

struct Header {
  std::uint64_t magic;
  std::uint64_t distance;  // from the beginning of the memory
};

[[noreturn]] void Fail(const char* reason) {
  std::fprintf(stderr, "%s\n", reason);
  std::abort();
}

void* WithHeader(std::size_t size, std::size_t distance, std::size_t alignment) {
  const std::size_t bytes = (size + distance + alignment - 1) / alignment * alignment;
  auto* memory = static_cast<char*>(std::aligned_alloc(alignment, bytes));
  if (memory == nullptr) throw std::bad_alloc();
  *reinterpret_cast<Header*>(memory + distance - sizeof(Header)) = {kMagic, distance};
  return memory + distance;
}

void FreeWithHeader(void* block) {
  if (block == nullptr) return;
  auto* header = static_cast<Header*>(block) - 1;
  if (header->magic != kMagic) Fail("a block without a header was deleted");
  header->magic = 0;
  std::free(static_cast<char*>(block) - header->distance);
}

void* Aligned(std::size_t size, std::align_val_t alignment) {
  const auto bytes = static_cast<std::size_t>(alignment);
  return WithHeader(size, bytes, bytes);
}

}  // namespace

void* operator new(std::size_t size) { return WithHeader(size, kPlainHeader, kPlainHeader); }
void* operator new[](std::size_t size) { return WithHeader(size, kPlainHeader, kPlainHeader); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return Aligned(size, alignment);
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return Aligned(size, alignment);
}
void operator delete(void* block) noexcept { FreeWithHeader(block); }
void operator delete[](void* block) noexcept { FreeWithHeader(block); }
void operator delete(void* block, std::align_val_t) noexcept { FreeWithHeader(block); }
void operator delete[](void* block, std::align_val_t) noexcept { FreeWithHeader(block); }

namespace {

struct Object {
  virtual ~Object() = default;
  char bytes[300] = {};
};

struct alignas(128) Wide {
  ~Wide() { bytes[0] = 0; }
  char bytes[256] = {};
};

struct Thrower {
  Thrower() { throw std::runtime_error("expected"); }
  char bytes[40];
};

struct alignas(64) WideThrower : Thrower {};

template <typename T>
void UseAll() {
  delete new T;
  delete[] new T[3];
  delete new (std::nothrow) T;
  delete[] new (std::nothrow) T[3];
}

template <typename T>
void UseThrower() {
  try {
    static_cast<void>(new (std::nothrow) T);
    Fail("the constructor did not throw");
  } catch (const std::runtime_error&) {
  }
  try {
    static_cast<void>(new (std::nothrow) T[2]);
    Fail("the constructor did not throw");
  } catch (const std::runtime_error&) {
  }
}

void UseSizes() {
  for (std::size_t size = 1; size < (std::size_t{1} << 20); size += 1 + size / 8) {
    ::operator delete(::operator new(size), size);
    ::operator delete[](::operator new[](size), size);
    ::operator delete(::operator new(size, std::nothrow));
    ::operator delete(::operator new(size, std::nothrow), size);
    constexpr std::align_val_t kPage{4096};
    ::operator delete(::operator new(size, kPage), size, kPage);
    ::operator delete[](::operator new[](size, kPage, std::nothrow), kPage);
  }
}

void UseLibrary() {
  std::vector<std::string> words;
  for (int i = 0; i < 500; ++i) words.push_back(std::string(static_cast<std::size_t>(i), 'x'));
  // Takes a buffer without an exception.
  std::stable_sort(words.begin(), words.end(), std::greater<>());
  static_cast<void>(std::make_shared<Object>());
}

void UseEverything() {
  for (int round = 0; round < 20; ++round) {
    UseAll<Object>();
    UseAll<Wide>();
    UseAll<char>();
    UseThrower<Thrower>();
    UseThrower<WideThrower>();
    UseSizes();
    UseLibrary();
  }
}

}  // namespace

int main() {
  UseEverything();
  std::thread other(UseEverything);
  other.join();
  std::puts("ok");
  return 0;
}
