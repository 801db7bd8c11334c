// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <random>
#include <string>

#include "conformance/deaths.h"
#include "conformance/malloc_api.h"
#include "conformance/witness.h"

namespace tcmalloc::testing {
namespace {

using Size = std::size_t;

constexpr Size kHeldBlocks = 64;
constexpr Size kAllocated = 1000;

alignas(64) std::uint64_t static_target[8];

// Data to write over the start of a freed block.
struct Overwrite {
  const char* name;
  Size offset;
  Size length;
  std::uint64_t (*value)(void* block, void* live_neighbour);
};

std::uint64_t AsValue(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

constexpr Overwrite kOverwrites[] = {
    {"int 0 at 0", 0, 4, [](void*, void*) { return std::uint64_t{0}; }},
    {"int -1 at 0", 0, 4, [](void*, void*) { return ~std::uint64_t{0}; }},
    {"int 42 at 0", 0, 4, [](void*, void*) { return std::uint64_t{42}; }},
    {"int at 4", 4, 4, [](void*, void*) { return std::uint64_t{0x41414141}; }},
    {"int 0 at 4", 4, 4, [](void*, void*) { return std::uint64_t{0}; }},
    {"one byte at 0", 0, 1, [](void*, void*) { return std::uint64_t{1}; }},
    {"zeros", 0, 8, [](void*, void*) { return std::uint64_t{0}; }},
    {"ones", 0, 8, [](void*, void*) { return ~std::uint64_t{0}; }},
    {"text", 0, 8, [](void*, void*) { return std::uint64_t{0x2164656566666f43}; }},
    {"random", 0, 8, [](void*, void*) { return std::uint64_t{0x7d21c4a6b5e98f03}; }},
    {"own address", 0, 8, [](void* block, void*) { return AsValue(block); }},
    {"address of a live block", 0, 8, [](void*, void* live) { return AsValue(live); }},
    {"address inside a live block", 0, 8, [](void*, void* live) { return AsValue(live) + 8; }},
    {"address on the stack", 0, 8,
     [](void*, void*) { return AsValue(__builtin_frame_address(0)) & ~std::uint64_t{15}; }},
    {"address of a static", 0, 8, [](void*, void*) { return AsValue(static_target); }},
    {"zeros at 8", 8, 8, [](void*, void*) { return std::uint64_t{0}; }},
    {"random at 8", 8, 8, [](void*, void*) { return std::uint64_t{0x123456789abcdef0}; }},
    {"address of a static at 8", 8, 8, [](void*, void*) { return AsValue(static_target); }},
};

// Where the victim lies among the blocks that were freed: the next to be given out, or deeper.
enum class Depth { kTop, kMiddle, kBottom };

void OverwriteAndAllocate(const Overwrite& overwrite, Depth depth, Size size) {
  LiveBlocks live(kHeldBlocks + kAllocated);
  char* blocks[kHeldBlocks];
  for (char*& block : blocks) {
    block = static_cast<char*>(Api().malloc(size));
    std::memset(block, 0x77, size);
  }
  // Every second one stays live, so that freed blocks have live neighbours.
  for (Size i = 1; i < kHeldBlocks; i += 2) live.Add(blocks[i], size);
  for (Size i = 0; i < kHeldBlocks; i += 2) Api().free(blocks[i]);
  const Size victim = depth == Depth::kTop      ? kHeldBlocks - 2
                      : depth == Depth::kMiddle ? kHeldBlocks / 2
                                                : 0;
  const std::uint64_t value = overwrite.value(blocks[victim], blocks[victim + 1]);
  std::memcpy(blocks[victim] + overwrite.offset, &value, overwrite.length);
  AllocateAndCheck(live, kAllocated, size);
  for (Size i = 1; i < kHeldBlocks; i += 2) {
    if (blocks[i][0] != 0x77 || blocks[i][size - 1] != 0x77) _exit(7);
  }
}

void AddPatterns(Suite& suite) {
  struct Position {
    const char* name;
    Depth depth;
  };
  constexpr Position kPositions[] = {
      {"last freed", Depth::kTop}, {"middle", Depth::kMiddle}, {"first freed", Depth::kBottom}};
  for (const Overwrite& overwrite : kOverwrites) {
    for (const Position& position : kPositions) {
      for (const Size size : std::initializer_list<Size>{16, 32, 64, 256, 1000, 4096}) {
        suite.Add(std::string("overwrite/") + overwrite.name + "/" + position.name + " of " +
                      std::to_string(size) + " bytes",
                  [overwrite, position, size](Case& result) {
                    ExpectAbortOrSurvival(
                        result, [&] { OverwriteAndAllocate(overwrite, position.depth, size); });
                  });
      }
    }
  }
}

// Random values over random freed blocks, freed again in between: R16 in small.
void AddRandom(Suite& suite) {
  constexpr int kChildren = 200;
  suite.Add("overwrite/random values over random freed blocks", [](Case& result) {
    for (unsigned seed = 0; seed < kChildren && !result.failed(); ++seed) {
      ExpectAbortOrSurvival(result, [seed] {
        std::mt19937_64 random(seed);
        constexpr Size kSizes[] = {8, 16, 48, 128, 600};
        const Size size = kSizes[random() % std::size(kSizes)];
        char* blocks[kHeldBlocks];
        for (char*& block : blocks) block = static_cast<char*>(Api().malloc(size));
        for (char* block : blocks) Api().free(block);
        for (int i = 0; i < 4; ++i) {
          const std::uint64_t value = random() >> (random() % 64);
          char* const block = blocks[random() % kHeldBlocks];
          std::memcpy(block + random() % (size / 8) * 8, &value, 1 + random() % 8);
        }
        LiveBlocks live(kAllocated);
        AllocateAndCheck(live, kAllocated, size);
      });
    }
  });
}

}  // namespace

void AddOverwriteDeaths(Suite& suite) {
  AddPatterns(suite);
  AddRandom(suite);
}

}  // namespace tcmalloc::testing
