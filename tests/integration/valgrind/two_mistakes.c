// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads a block that was freed, and writes behind the end of another one.

#include <stdlib.h>

int main(void) {
  volatile char* freed = malloc(10);
  freed[3] = 1;
  free((void*)freed);
  const int read = freed[3];
  volatile char* block = malloc(20);
  block[20] = (char)read;
  free((void*)block);
  return 0;
}
