// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks whose allocation may fail, with all that must hold nevertheless: null comes with ENOMEM,
// success and deallocation leave errno alone, a failed realloc leaves its block alone, and no block
// loses its contents.

#ifndef TCMALLOC_TESTS_STRESS_FAULTS_FAULTY_BLOCK_H_
#define TCMALLOC_TESTS_STRESS_FAULTS_FAULTY_BLOCK_H_

#include <malloc.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

#include "stress/threads/workload.h"

namespace tcmalloc::testing {

// Tells if null is an answer.
enum class Memory : uint8_t { kMayFail, kMustBeThere };

// No system call sets this, so that it shows who else did.
inline constexpr int kUntouchedErrno = 4000;

class FaultyBlock {
 public:
  bool empty() const { return data_ == nullptr; }
  // Counted as statistics do, rounded up.
  size_t usable_size() const { return empty() ? 0 : malloc_usable_size(data_); }

  void Allocate(Random& random, size_t size, Memory memory) {
    errno = kUntouchedErrno;
    void* data = AllocateBytes(random, size);
    if (!CheckOutcome(data, memory)) return;
    Fill(data, size, random);
  }

  void Resize(Random& random, size_t size, Memory memory) {
    Check();
    errno = kUntouchedErrno;
    void* data = realloc(data_, size);
    if (!CheckOutcome(data, memory)) return Check();
    const size_t kept = std::min({size_, size, kEdge});
    data_ = static_cast<unsigned char*>(data);
    for (size_t i = 0; i < kept; ++i) PROGRAM_CHECK(data_[i] == Expected(i));
    Fill(data, size, random);
  }

  void Check() const {
    ForEachCheckedByte([this](size_t i) { PROGRAM_CHECK(data_[i] == Expected(i)); });
  }

  void Free() {
    Check();
    errno = kUntouchedErrno;
    free(data_);
    PROGRAM_CHECK(errno == kUntouchedErrno);
    data_ = nullptr;
  }

 private:
  static constexpr size_t kEdge = 64;
  static constexpr size_t kStride = size_t{1} << 20;
  static constexpr size_t kLarge = size_t{64} << 10;
  static constexpr size_t kLargestAlignment = size_t{4} << 20;

  static bool CheckOutcome(const void* data, Memory memory) {
    PROGRAM_CHECK(errno == (data == nullptr ? ENOMEM : kUntouchedErrno));
    PROGRAM_CHECK(data != nullptr || memory == Memory::kMayFail);
    return data != nullptr;
  }

  static void* AllocateBytes(Random& random, size_t size) {
    switch (random.Below(8)) {
      case 0:
        // Zeroing large blocks is what would take most of the time.
        return size < kLarge || random.Below(8) == 0 ? AllocateZeroed(size) : malloc(size);
      case 1:
        return AllocateAligned(size_t{16} << random.Below(10), size);
      case 2:
        return AllocateAligned(size < kLarge ? 64 : kLargestAlignment, size);
      case 3:
        return AllocateNoThrow(size);
      default:
        return malloc(size);
    }
  }

  static void* AllocateZeroed(size_t size) {
    auto* data = static_cast<unsigned char*>(calloc(1, size));
    for (size_t i = 0; data != nullptr && i < size; i += i < kEdge ? 1 : kStride) {
      PROGRAM_CHECK(data[i] == 0);
    }
    return data;
  }

  static void* AllocateAligned(size_t alignment, size_t size) {
    void* data = nullptr;
    const int error = posix_memalign(&data, alignment, size);
    PROGRAM_CHECK(error == (data == nullptr ? ENOMEM : 0));
    PROGRAM_CHECK(reinterpret_cast<uintptr_t>(data) % alignment == 0);
    return data;
  }

  // operator new has no say about errno.
  static void* AllocateNoThrow(size_t size) {
    void* data = ::operator new(size, std::nothrow_t());
    errno = data == nullptr ? ENOMEM : kUntouchedErrno;
    return data;
  }

  void Fill(void* data, size_t size, Random& random) {
    PROGRAM_CHECK(malloc_usable_size(data) >= size);
    data_ = static_cast<unsigned char*>(data);
    size_ = size;
    tag_ = static_cast<unsigned char>(random.Next() >> 56);
    ForEachCheckedByte([this](size_t i) { data_[i] = Expected(i); });
  }

  unsigned char Expected(size_t i) const { return static_cast<unsigned char>(tag_ + i); }

  // Both ends in full, of the middle few bytes: large blocks must cost little.
  template <typename Visit>
  void ForEachCheckedByte(Visit visit) const {
    const size_t head = std::min(size_, kEdge);
    const size_t tail = std::max(head, size_ - head);
    for (size_t i = 0; i < head; ++i) visit(i);
    for (size_t i = kStride; i < tail; i += kStride) visit(i);
    for (size_t i = tail; i < size_; ++i) visit(i);
  }

  unsigned char* data_ = nullptr;
  size_t size_ = 0;
  unsigned char tag_ = 0;
};

// Random operations on a bounded set of blocks. One thread at a time, but not always the same one.
template <size_t kSlots>
class FaultyBlockSet {
 public:
  explicit constexpr FaultyBlockSet(size_t (*choose_size)(Random&)) : choose_size_(choose_size) {}

  void Steps(Random& random, int count, Memory memory) {
    for (int i = 0; i < count; ++i) Step(random, memory);
  }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (FaultyBlock& block : blocks_) {
      if (!block.empty()) visit(block);
    }
  }
  void CheckAll() {
    ForEach([](const FaultyBlock& block) { block.Check(); });
  }

 private:
  void Step(Random& random, Memory memory) {
    FaultyBlock& block = blocks_[random.Below(kSlots)];
    if (block.empty()) {
      block.Allocate(random, choose_size_(random), memory);
    } else if (block.usable_size() <= kMostToCopy && random.Below(4) == 0) {
      block.Resize(random, choose_size_(random), memory);
    } else {
      block.Free();
    }
  }

  // Copies make memory resident, which costs most of the time.
  static constexpr size_t kMostToCopy = size_t{64} << 10;

  size_t (*choose_size_)(Random&);
  std::array<FaultyBlock, kSlots> blocks_{};
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_STRESS_FAULTS_FAULTY_BLOCK_H_
