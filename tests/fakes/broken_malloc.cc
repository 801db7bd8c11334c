// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A malloc with one deliberate fault, over glibc's own: preloaded under a test, it shows that the
// test notices the fault. BROKEN_MALLOC selects it; without it the library does nothing wrong.

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <string_view>

extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* block, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void __libc_free(void* block);
}

namespace {

enum class Fault {
  kUnread,
  kNone,
  kDuplicate,     // malloc returns its last block again
  kMisaligned,    // memalign ignores the alignment
  kNotZeroed,     // calloc leaves a byte behind
  kShort,         // a block is smaller than it was asked for
  kScribble,      // free writes into another live block
  kLosesContent,  // realloc does not copy everything
  kLosesErrno,    // free changes errno
};

// Blocks before the fault occurs, so that a program has started up.
constexpr int kHealthyCalls = 2000;
constexpr std::size_t kSlack = 64;

Fault ReadFault() {
  const char* value = std::getenv("BROKEN_MALLOC");
  const std::string_view name = value == nullptr ? "" : value;
  if (name == "duplicate") return Fault::kDuplicate;
  if (name == "misaligned") return Fault::kMisaligned;
  if (name == "not-zeroed") return Fault::kNotZeroed;
  if (name == "short") return Fault::kShort;
  if (name == "scribble") return Fault::kScribble;
  if (name == "loses-content") return Fault::kLosesContent;
  if (name == "loses-errno") return Fault::kLosesErrno;
  return Fault::kNone;
}

// True at each call with the chosen fault, after a healthy start.
bool Strikes(Fault fault) {
  static std::atomic<Fault> chosen{Fault::kUnread};
  static std::atomic<int> calls{0};
  if (chosen.load(std::memory_order_relaxed) == Fault::kUnread) {
    chosen.store(ReadFault(), std::memory_order_relaxed);
  }
  return chosen.load(std::memory_order_relaxed) == fault &&
         calls.fetch_add(1, std::memory_order_relaxed) >= kHealthyCalls;
}

std::atomic<void*> last_block{nullptr};

}  // namespace

extern "C" {

void* malloc(std::size_t size) noexcept {
  if (size < kSlack && Strikes(Fault::kDuplicate)) {
    void* const again = last_block.exchange(nullptr);
    if (again != nullptr && malloc_usable_size(again) >= size) return again;
  }
  // The slack keeps every fault but the intended one out of the heap's own records.
  void* const block = __libc_malloc(size + kSlack);
  if (size < kSlack) last_block.store(block);
  return block;
}

void free(void* block) noexcept {
  if (Strikes(Fault::kScribble)) {
    auto* const victim = static_cast<unsigned char*>(last_block.load());
    if (victim != nullptr && victim != block) victim[0] ^= 0x20;
  }
  if (block == last_block.load()) last_block.store(nullptr);
  __libc_free(block);
  if (Strikes(Fault::kLosesErrno)) errno = EBUSY;
}

void* calloc(std::size_t count, std::size_t size) noexcept {
  void* const block = __libc_calloc(count, size);
  const std::size_t total = count * size;
  if (block != nullptr && total > 0 && Strikes(Fault::kNotZeroed)) {
    static_cast<unsigned char*>(block)[total / 2] = 1;
  }
  return block;
}

void* realloc(void* block, std::size_t size) noexcept {
  if (block == last_block.load()) last_block.store(nullptr);
  void* const moved = __libc_realloc(block, size);
  if (block != nullptr && moved != nullptr && size > 0 && Strikes(Fault::kLosesContent)) {
    static_cast<unsigned char*>(moved)[0] ^= 0x20;
  }
  return moved;
}

void* memalign(std::size_t alignment, std::size_t size) noexcept {
  if (alignment > 64 && Strikes(Fault::kMisaligned)) {
    auto* const block = static_cast<char*>(__libc_memalign(alignment, size + 2 * alignment));
    // Aligned to less than was asked for, but still a block that glibc made: never freed.
    return block + alignment / 2;
  }
  return __libc_memalign(alignment, size);
}

std::size_t malloc_usable_size(void* block) noexcept {
  if (block == nullptr) return 0;
  // glibc's own record: the size word in front of the block, without its flag bits.
  std::size_t header;
  std::memcpy(&header, static_cast<char*>(block) - sizeof header, sizeof header);
  const bool mapped = (header & 2) != 0;
  const std::size_t usable = (header & ~std::size_t{7}) - (mapped ? 2 : 1) * sizeof header;
  return Strikes(Fault::kShort) ? usable / 16 : usable;
}

}  // extern "C"
