// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode, mistakes with large blocks are noticed also when so many were freed at once
// that no time is left for page guards. Each mistake is made in a child, which must end by a
// signal.

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

constexpr int kFreed = 400;
constexpr size_t kSize = 400'000;

char* FreeManyAndOne() {
  for (int i = 0; i < kFreed; ++i) {
    const size_t size = 500'000 + static_cast<size_t>(i) * 64;
    char* block = static_cast<char*>(malloc(size));
    memset(block, 1, size);
    free(block);
  }
  char* block = static_cast<char*>(malloc(kSize));
  free(block);
  return block;
}

bool IsNoticed(void (*mistake)(char*)) {
  const pid_t child = fork();
  if (child == 0) {
    mistake(FreeManyAndOne());
    exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WIFSIGNALED(status) && (WTERMSIG(status) == SIGABRT || WTERMSIG(status) == SIGSEGV);
}

}  // namespace

int main() {
  const struct {
    const char* name;
    void (*mistake)(char*);
  } kMistakes[] = {
      {"double free", [](char* block) { free(block); }},
      {"write at the start", [](char* block) { block[10] = 1; }},
      {"write at the end", [](char* block) { block[kSize - 1] = 1; }},
  };
  int missed = 0;
  for (const auto& [name, mistake] : kMistakes) {
    if (IsNoticed(mistake)) continue;
    printf("not noticed: %s\n", name);
    ++missed;
  }
  return missed == 0 ? 0 : 1;
}
