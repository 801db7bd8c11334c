// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that replaces two of the operators, as the C++ standard allows. All others lead to
// these by default, so that each block here is freed as it should be, although the allocator's
// versions of the others see blocks that came from malloc, and free those of its own.

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <new>
#include <string>
#include <vector>

void* operator new(std::size_t size) {
  void* block = std::malloc(size);
  if (block == nullptr) throw std::bad_alloc();
  return block;
}

void operator delete(void* block) noexcept { std::free(block); }

namespace {

struct Object {
  virtual ~Object() = default;
  char bytes[300] = {};
};

void UseObjects() {
  delete new Object;
  delete[] new Object[3];
  delete new (std::nothrow) Object;
  const auto shared = std::make_shared<Object>();
  std::vector<Object> many(100);
  std::string(5000, 's').append(many[0].bytes, sizeof(many[0].bytes));
}

void UseOperators(std::size_t size) {
  ::operator delete(::operator new(size));
  ::operator delete(::operator new(size), size);
  ::operator delete(::operator new(size, std::nothrow));
  ::operator delete[](::operator new[](size));
  ::operator delete[](::operator new[](size), size);
}

}  // namespace

int main() {
  for (int round = 0; round < 100; ++round) UseObjects();
  for (std::size_t size = 1; size < (std::size_t{1} << 20); size += 1 + size / 8) {
    UseOperators(size);
  }
  std::puts("ok");
  return 0;
}
