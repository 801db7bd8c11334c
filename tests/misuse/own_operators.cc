// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// No mistakes: a program that replaces operator new and operator delete in one form each. The
// others are the library's, so that blocks of malloc go to delete, and blocks of new to free.

#include <cstdio>
#include <cstdlib>
#include <map>
#include <new>
#include <string>

namespace {

int calls_of_new = 0;

struct Named {
  std::string name = std::string(100, 'x');
};

}  // namespace

void* operator new(std::size_t size) {
  ++calls_of_new;
  // More than the program asks for, as debugging aids do.
  if (void* block = std::malloc(size + 8)) return block;
  throw std::bad_alloc();
}
void operator delete(void* block) noexcept { std::free(block); }

int main() {
  std::map<int, std::string> names;
  for (int i = 0; i < 1000; ++i) names[i] = std::string(i, 'x');
  for (int i = 0; i < 100; ++i) {
    delete[] new Named[10];
    delete[] new char[100];
    delete new Named;
    delete new (std::nothrow) Named;
    ::operator delete(new (std::nothrow) char);
    void* block = ::operator new[](100);
    std::free(std::realloc(block, 1000));
  }
  if (calls_of_new > 1000) return 0;
  std::printf("%d calls of operator new\n", calls_of_new);
  return 1;
}
