// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that leaks some blocks for seconds while others come and go: the function that leaks is
// the one suspect.

#include <tcmalloc/leak_suspects.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

extern "C" __attribute__((noinline)) void* site_of_leak(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

// Leaks so many blocks, while a hundred times as many others come and go.
void Leak(size_t blocks, std::vector<void*>* kept, std::vector<void*>* steady) {
  for (size_t i = 0; i < blocks; ++i) {
    kept->push_back(site_of_leak(20'000));
    for (size_t k = 0; k < 100; ++k) {
      void*& place = (*steady)[static_cast<size_t>(std::rand()) % steady->size()];
      std::free(place);
      place = std::malloc(20'000);
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
}

}  // namespace

// With an argument, nothing is leaked: one block stays, so that a profile is not empty.
int main(int argc, char**) {
  if (argc > 1) {
    asm volatile("" : : "r"(std::malloc(1 << 20)) : "memory");
    return 0;
  }
  std::vector<void*> kept;
  std::vector<void*> steady(500);
  std::vector<tcmalloc::LeakSuspect> suspects;
  // An even growth looks uneven in one look of forty, by the chance of the samples.
  constexpr size_t kBlocksOfLook = 200;
  constexpr size_t kMostLooks = 20;
  for (size_t look = 0; look < kMostLooks && suspects.empty(); ++look) {
    Leak(kBlocksOfLook, &kept, &steady);
    suspects = tcmalloc::LeakSuspects();
  }
  if (suspects.size() != 1) {
    std::fprintf(stderr, "%zu suspects\n", suspects.size());
    return 1;
  }
  if (!tcmalloc::LeakSuspects(0).empty() || tcmalloc::LeakSuspects(1).size() != 1 ||
      tcmalloc::LeakSuspects(SIZE_MAX).size() != 1) {
    std::fputs("another number of suspects if another number is asked for\n", stderr);
    return 1;
  }
  const tcmalloc::LeakSuspect& suspect = suspects[0];
  const auto from = reinterpret_cast<const char*>(&site_of_leak);
  const auto* frame = static_cast<const char*>(suspect.stack[0]);
  if (suspect.depth < 2 || frame <= from || frame > from + 100) {
    std::fputs("another function is suspected\n", stderr);
    return 1;
  }
  const double bytes = static_cast<double>(kept.size()) * 20'480;
  if (suspect.bytes < bytes / 2 || suspect.bytes > bytes * 2 || suspect.confidence <= 0.3 ||
      suspect.confidence > 1 || suspect.oldest_ns <= 0) {
    std::fprintf(stderr, "%.0f bytes with confidence %.2f\n", suspect.bytes, suspect.confidence);
    return 1;
  }
  return 0;
}
