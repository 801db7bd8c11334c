// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Runs one of the programs, or lists what is expected of all.

#include "integration/leaks/corpus.h"

#include <cstdio>
#include <cstring>

std::vector<Program>& Programs() {
  static std::vector<Program> programs;
  return programs;
}

void ClearStack() {
  volatile char bytes[16 << 10];
  for (size_t i = 0; i < sizeof(bytes); ++i) bytes[i] = 0;
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  if (std::strcmp(argv[1], "--list") == 0) {
    for (const Program& program : Programs()) {
      std::printf("%s %zu %zu %s\n", program.name.data(), program.bytes, program.objects,
                  program.site.data());
    }
    return 0;
  }
  for (const Program& program : Programs()) {
    if (program.name != argv[1]) continue;
    program.run();
    ClearStack();
    return 0;
  }
  return 2;
}
