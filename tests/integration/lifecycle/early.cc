// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The library as it is shipped serves a program that allocates before its own relocation is
// finished: the object file that is linked with this one does.

#include <cstdlib>

int main() {
  void* block = malloc(1000);
  const bool served = block != nullptr;
  free(block);
  return served ? 0 : 1;
}
