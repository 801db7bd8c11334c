// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode a sample is forgotten when its block leaves the quarantine, also where it leaves
// a pool together with other blocks.

#include <gperftools/malloc_extension.h>
#include <stdio.h>
#include <stdlib.h>

#include <string>
#include <vector>

namespace {

constexpr size_t kBlocks = 20'000;
// More than wait at a time.
constexpr int kMostWaiting = 500;

// Returns the samples in use, or -1 if there is no heap profile.
int SamplesInUse() {
  std::string profile;
  MallocExtension::instance()->GetHeapSample(&profile);
  int samples = -1;
  sscanf(profile.c_str(), "heap profile: %d:", &samples);
  return samples;
}

}  // namespace

int main() {
  std::vector<void*> blocks(kBlocks);
  for (void*& block : blocks) block = malloc(100);
  const int used = SamplesInUse();
  for (void* block : blocks) free(block);
  const int left = SamplesInUse();
  printf("samples of %zu blocks in use: %d, and %d when they are free\n", kBlocks, used, left);
  return used > 2 * kMostWaiting && 0 <= left && left < kMostWaiting ? 0 : 1;
}
