// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The objects that a model of a cache has in use.

#ifndef TCMALLOC_TESTS_MODEL_STAMPED_BLOCKS_H_
#define TCMALLOC_TESTS_MODEL_STAMPED_BLOCKS_H_

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "pages/page_map.h"
#include "pages/span.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {

// Each bears its own address in its first and last word, so that an object which is handed out
// twice, or written to while it is in use, shows.
class StampedBlocks {
 public:
  bool empty() const { return blocks_.empty(); }
  size_t size() const { return blocks_.size(); }

  // Of class `c`, as `map` has to know.
  void Add(uint64_t* object, uint8_t c, const PageMap& map) {
    const Span* span = map.FindInUse(object);
    ASSERT_NE(span, nullptr);
    ASSERT_EQ(span->size_class, c);
    object[0] = object[kSizeClasses[c].size / 8 - 1] = reinterpret_cast<uint64_t>(object);
    blocks_.push_back({object, c});
  }

  // One of them. Requires that there is one.
  const void* at(uint64_t pick) const { return blocks_[pick % blocks_.size()].object; }

  // One of them, which is in use no longer. Requires that there is one.
  void* Take(uint64_t pick) {
    std::swap(blocks_[pick % blocks_.size()], blocks_.back());
    return TakeLast();
  }
  // The one that was added last, or any after a Take. Likewise.
  void* TakeLast() {
    const Block block = blocks_.back();
    blocks_.pop_back();
    CheckStamp(block);
    return block.object;
  }

  void Check() const {
    for (const Block& block : blocks_) CheckStamp(block);
  }

 private:
  struct Block {
    uint64_t* object;
    uint8_t size_class;
  };

  static void CheckStamp(const Block& block) {
    const auto value = reinterpret_cast<uint64_t>(block.object);
    ASSERT_EQ(block.object[0], value);
    ASSERT_EQ(block.object[kSizeClasses[block.size_class].size / 8 - 1], value);
  }

  std::vector<Block> blocks_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_STAMPED_BLOCKS_H_
