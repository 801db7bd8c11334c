// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_INTEGRATION_LIMITS_KEPT_BLOCKS_H_
#define TCMALLOC_TESTS_INTEGRATION_LIMITS_KEPT_BLOCKS_H_

#include <cstdlib>

#include "integration/limits/address_limit.h"

namespace tcmalloc::testing {

// Blocks linked through their first word, so that keeping them takes no memory of its own.
class KeptBlocks {
 public:
  // Returns false if there is no memory.
  bool Grow(Size size) {
    auto* const block = static_cast<Block*>(std::malloc(size));
    if (block == nullptr) return false;
    block->next = first_;
    first_ = block;
    ++count_;
    bytes_ += size;
    return true;
  }
  void FreeAll() {
    while (first_ != nullptr) {
      Block* const block = first_;
      first_ = block->next;
      std::free(block);
    }
  }

  // Return what was kept in all.
  Size count() const { return count_; }
  Size bytes() const { return bytes_; }

 private:
  struct Block {
    Block* next;
  };
  Block* first_ = nullptr;
  Size count_ = 0;
  Size bytes_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_INTEGRATION_LIMITS_KEPT_BLOCKS_H_
