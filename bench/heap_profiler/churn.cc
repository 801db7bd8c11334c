// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A program that mostly allocates and frees, for comparisons of heap profilers: each thread keeps
// some thousand blocks and replaces them in random order, from 32 call stacks of different depths.
//
//     churn THREADS MILLIONS
//
// replaces so many blocks in all.

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

constexpr int kSlots = 8192;
constexpr int kSites = 32;

struct State {
  uint64_t random;
  void* slots[kSlots];

  uint64_t Next() {
    random ^= random << 13;
    random ^= random >> 7;
    random ^= random << 17;
    return random;
  }
};

// Allocates kSite + 4 calls deeper than its caller.
template <int kDepth>
__attribute__((noinline)) void* AllocateAt(size_t bytes) {
  void* block = AllocateAt<kDepth - 1>(bytes);
  asm volatile("" : : "r"(block) : "memory");
  return block;
}
template <>
__attribute__((noinline)) void* AllocateAt<0>(size_t bytes) {
  void* block = std::malloc(bytes);
  asm volatile("" : : "r"(block) : "memory");
  return block;
}

template <int... kSite>
void* AllocateFrom(uint64_t site, size_t bytes, std::integer_sequence<int, kSite...>) {
  void* block = nullptr;
  static_cast<void>(
      ((site == kSite ? (block = AllocateAt<kSite / 2 + 4>(bytes), true) : false) || ...));
  return block;
}

void Churn(uint64_t seed, uint64_t count) {
  auto* state = static_cast<State*>(std::calloc(1, sizeof(State)));
  state->random = seed;
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t random = state->Next();
    void*& slot = state->slots[random % kSlots];
    std::free(slot);
    slot = AllocateFrom((random >> 16) % kSites, 16 + (random >> 32) % 496,
                        std::make_integer_sequence<int, kSites>());
  }
  for (void* slot : state->slots) std::free(slot);
  std::free(state);
}

}  // namespace

int main(int argc, char** argv) {
  const int threads = argc > 1 ? std::atoi(argv[1]) : 1;
  const uint64_t count = (argc > 2 ? std::strtoull(argv[2], nullptr, 10) : 1) * 1'000'000;
  std::vector<std::thread> running;
  for (int i = 0; i < threads; ++i) {
    running.emplace_back(Churn, 88172645463325252u + static_cast<uint64_t>(i),
                         count / static_cast<uint64_t>(threads));
  }
  for (std::thread& thread : running) thread.join();
  return 0;
}
