// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The sources of all size classes, for tests.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_SOURCE_TABLE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_SOURCE_TABLE_H_

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "size_class/size_classes.h"
#include "transfer/batch_source.h"

namespace tcmalloc::testing {

// They exist from the beginning, so that a test can set them up, but it fails if one is used that
// was not asked for first.
template <BatchSource S>
class FakeSourceTable {
 public:
  using Source = S;

  // For the test itself.
  Source& at(size_t c) const { return sources_[c]; }

  Source& Ensure(uint8_t c) {
    ensured_[c] = true;
    return sources_[c];
  }
  Source& operator[](uint8_t c) const {
    EXPECT_TRUE(ensured_[c]) << "class " << int{c};
    return sources_[c];
  }
  Source* Find(uint8_t c) const { return ensured_[c] ? &sources_[c] : nullptr; }

 private:
  std::unique_ptr<Source[]> sources_ = std::make_unique<Source[]>(kSizeClassCount);
  std::array<std::atomic<bool>, kSizeClassCount> ensured_{};
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_SOURCE_TABLE_H_
