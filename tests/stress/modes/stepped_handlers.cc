// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// stepped_handlers [OPERATIONS]: allocates, resizes and frees while a signal handler that does the
// same, and keeps blocks, runs before every second instruction. Aborts if a block is not aligned or
// loses its contents; the mode that it runs in looks at the rest.

#include <signal.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr uint64_t kTrapFlag = 0x100;

// Random blocks that come and go.
template <size_t kBlocks>
class Blocks {
 public:
  explicit Blocks(uint64_t seed) : random_(seed) {}

  // Frees the block of a random place, or makes it another size; or, if there is none, allocates
  // one.
  void Change() {
    Block& block = blocks_[Next() % kBlocks];
    if (block.start == nullptr) return Allocate(block);
    Next() % 4 == 0 ? Resize(block) : Free(block);
  }
  void FreeAll() {
    for (Block& block : blocks_) {
      if (block.start != nullptr) Free(block);
    }
  }

 private:
  struct Block {
    unsigned char* start = nullptr;
    size_t size = 0;
    unsigned char byte = 0;
  };

  uint64_t Next() {
    random_ = random_ * 6364136223846793005 + 1442695040888963407;
    return random_ >> 33;
  }
  void Allocate(Block& block) {
    const size_t alignment = std::size_t{16} << Next() % 5;
    block.size = Next() % 600;
    block.byte = static_cast<unsigned char>(Next());
    void* start = alignment == 16 ? std::malloc(block.size) : nullptr;
    if (start == nullptr) start = std::aligned_alloc(alignment, block.size);
    block.start = static_cast<unsigned char*>(start);
    if (block.start == nullptr) std::abort();
    if (reinterpret_cast<uintptr_t>(block.start) % alignment != 0) std::abort();
    std::memset(block.start, block.byte, block.size);
  }
  void Resize(Block& block) {
    const size_t size = 1 + Next() % 600;
    block.start = static_cast<unsigned char*>(std::realloc(block.start, size));
    if (block.start == nullptr) std::abort();
    Check(block, std::min(block.size, size));
    block.size = size;
    std::memset(block.start, block.byte, block.size);
  }
  static void Check(const Block& block, size_t bytes) {
    for (size_t i = 0; i < bytes; ++i) {
      if (block.start[i] != block.byte) std::abort();
    }
  }
  static void Free(Block& block) {
    Check(block, block.size);
    std::free(block.start);
    block.start = nullptr;
  }

  uint64_t random_;
  Block blocks_[kBlocks];
};

Blocks<64> of_handler{1};
int traps = 0;

void HandleTrap(int) {
  if (++traps % 2 == 0) of_handler.Change();
}

void SetTrapFlag(bool on) {
  const uint64_t flags = __builtin_ia32_readeflags_u64();
  __builtin_ia32_writeeflags_u64(on ? flags | kTrapFlag : flags & ~kTrapFlag);
}

}  // namespace

int main(int argc, char** argv) {
  const int operations = argc > 1 ? std::atoi(argv[1]) : 200;
  signal(SIGTRAP, HandleTrap);
  static Blocks<300> blocks{2};
  for (int i = 0; i < operations; ++i) {
    SetTrapFlag(true);
    blocks.Change();
    SetTrapFlag(false);
  }
  blocks.FreeAll();
  of_handler.FreeAll();
  std::printf("%d boundaries\n", traps);
}
