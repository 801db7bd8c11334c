// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
#ifndef TCMALLOC_BENCH_WORKLOADS_COMMON_BLOCK_H_
#define TCMALLOC_BENCH_WORKLOADS_COMMON_BLOCK_H_

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace tcmalloc::bench {

// Prints one line to stderr and ends the process with status 1, without running exit handlers:
// the heap is not to be trusted any more.
[[noreturn]] __attribute__((format(printf, 1, 2))) void Fail(const char* format, ...);

// Keeps the compiler from reasoning about what a pointer points to, and so from removing a pair of
// malloc and free.
inline void Escape(void* pointer) { asm volatile("" : : "g"(pointer) : "memory"); }

// Returns the word to write into a block. It differs between addresses and between sizes, so that
// overlapping blocks overwrite each other's words with something else.
inline uint64_t BlockWord(const void* address, size_t size) {
  return (reinterpret_cast<uintptr_t>(address) + size) * 0x9E3779B97F4A7C15u;
}

// An allocation and its size. A null address means that there is none.
struct Block {
  void* address = nullptr;
  size_t size = 0;
};

// Writes the block's word to its beginning and the word's highest byte to its end; blocks below 8
// bytes get that byte only. Nothing in between is touched.
inline void Stamp(const Block& block) {
  const uint64_t word = BlockWord(block.address, block.size);
  char* bytes = static_cast<char*>(block.address);
  if (block.size >= sizeof(word)) std::memcpy(bytes, &word, sizeof(word));
  if (block.size > 0) bytes[block.size - 1] = static_cast<char>(word >> 56);
}

// Bytes of which filling a buffer touches at least one.
inline constexpr size_t kBenchPage = 4096;

// Writes each page of [from, block.size) once, as filling a buffer would, then stamps the block
// anew over it.
inline void TouchPages(const Block& block, size_t from) {
  char* bytes = static_cast<char*>(block.address);
  for (size_t offset = from; offset < block.size; offset += kBenchPage) bytes[offset] = 'x';
  Stamp(block);
}

[[noreturn]] void FailOverwritten(const Block& block);

// Fails unless the block still holds what Stamp() wrote.
inline void CheckStamp(const Block& block) {
  const uint64_t word = BlockWord(block.address, block.size);
  const char* bytes = static_cast<const char*>(block.address);
  uint64_t found = word;
  if (block.size >= sizeof(word)) std::memcpy(&found, bytes, sizeof(found));
  const bool tail_holds = block.size == 0 || bytes[block.size - 1] == static_cast<char>(word >> 56);
  if (found != word || !tail_holds) [[unlikely]]
    FailOverwritten(block);
}

// Writes to a block that is about to be freed what CheckStamp() will not accept, so that a block
// that was handed out twice is noticed by its second owner.
inline void Invalidate(const Block& block) {
  const uint64_t word = ~BlockWord(block.address, block.size);
  char* bytes = static_cast<char*>(block.address);
  if (block.size >= sizeof(word)) {
    std::memcpy(bytes, &word, sizeof(word));
  } else if (block.size > 0) {
    bytes[block.size - 1] = static_cast<char>(word >> 56);
  }
}

// Takes over what an allocation function returned for `size` and stamps it.
inline Block Adopt(void* address, size_t size) {
  if (address == nullptr) [[unlikely]]
    Fail("no memory for %zu bytes", size);
  Escape(address);
  const Block block{address, size};
  Stamp(block);
  return block;
}

inline Block Allocate(size_t size) { return Adopt(std::malloc(size), size); }

// Checks and frees; the block is empty afterwards. An empty block is left alone.
inline void Release(Block* block) {
  if (block->address == nullptr) return;
  CheckStamp(*block);
  Invalidate(*block);
  Escape(block->address);
  std::free(block->address);
  *block = Block{};
}

// Resizes by realloc and checks that the contents came along. Returns the block stamped anew.
inline Block Reallocate(const Block& block, size_t size) {
  CheckStamp(block);
  const uint64_t word = BlockWord(block.address, block.size);
  const bool carries_word = block.size >= sizeof(word) && size >= sizeof(word);
  void* address = std::realloc(block.address, size);
  if (address == nullptr) [[unlikely]]
    Fail("no memory for %zu bytes", size);
  if (carries_word && std::memcmp(address, &word, sizeof(word)) != 0) [[unlikely]] {
    Fail("realloc from %zu to %zu bytes lost the contents", block.size, size);
  }
  return Adopt(address, size);
}

}  // namespace tcmalloc::bench

#endif  // TCMALLOC_BENCH_WORKLOADS_COMMON_BLOCK_H_
