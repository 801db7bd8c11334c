// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// In hardened mode, who knows the order of all frees must not know which block comes next. Guesses,
// for pairs of a free and an allocation, that it is the one that was freed longest ago.

#include <stdio.h>
#include <stdlib.h>

#include <algorithm>
#include <deque>
#include <thread>

namespace {

constexpr int kPairs = 4000;
constexpr int kFirstGuesses = 1000;  // before as many blocks wait as may
// Of a group of 32, the last one is certain, and one of 8 on the average.
constexpr int kMostHits = (kPairs - kFirstGuesses) / 4;

int CountHits(size_t size) {
  std::deque<void*> freed;
  int hits = 0;
  void* block = malloc(size);
  for (int i = 0; i < kPairs; ++i) {
    free(block);
    freed.push_back(block);
    block = malloc(size);
    if (i >= kFirstGuesses && block == freed.front()) ++hits;
    const auto place = std::find(freed.begin(), freed.end(), block);
    if (place != freed.end()) freed.erase(place);
  }
  free(block);
  return hits;
}

}  // namespace

int main() {
  int bad = 0;
  // The caches of CPUs serve a program of more than one thread.
  std::thread([&bad] {
    for (const size_t size : {size_t{24}, size_t{100}, size_t{150}}) {
      const int hits = CountHits(size);
      printf("%zu bytes: %d of %d guessed\n", size, hits, kPairs - kFirstGuesses);
      if (hits > kMostHits) ++bad;
    }
  }).join();
  return bad == 0 ? 0 : 1;
}
