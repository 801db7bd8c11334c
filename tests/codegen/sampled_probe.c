// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A small program from which some samples are taken, of which some live until it ends.

#include <stdlib.h>

enum { kBlocks = 64, kRounds = 1024, kBytes = 1024 };

int main(void) {
  static char* blocks[kBlocks];
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kBlocks; ++i) {
      free(blocks[i]);
      blocks[i] = malloc(kBytes);
      if (blocks[i] == NULL) return 1;
      blocks[i][0] = 1;
    }
  }
  return 0;
}
