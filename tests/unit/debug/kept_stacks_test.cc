// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "debug/kept_stacks.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

namespace tcmalloc {
namespace {

using Frames = std::vector<void*>;

Frames Stack(std::initializer_list<uintptr_t> addresses) {
  Frames frames;
  for (const uintptr_t address : addresses) frames.push_back(reinterpret_cast<void*>(address));
  return frames;
}

class KeptStacksTest : public ::testing::Test {
 protected:
  StackId Keep(const Frames& frames) { return kept_->Keep(frames, *stacks_); }

  std::unique_ptr<StackTable> stacks_ = std::make_unique<StackTable>();
  std::unique_ptr<KeptStacks> kept_ = std::make_unique<KeptStacks>();
};

TEST_F(KeptStacksTest, NamesStacksAsTheTableDoes) {
  const Frames all[] = {Stack({}),           Stack({0x10}),       Stack({0x10, 0x20}),
                        Stack({0x20, 0x10}), Stack({0x10, 0x21}), Stack({0x10, 0x20, 0x30})};
  for (int round = 0; round < 3; ++round) {
    for (const Frames& frames : all) {
      const StackId stack = Keep(frames);
      ASSERT_EQ(stacks_->Add(frames), stack);
      ASSERT_EQ(stacks_->FramesOfHeld(stack).size(), frames.size());
    }
  }
}

TEST_F(KeptStacksTest, KeepsCountOfReferences) {
  constexpr uintptr_t kStacks = 1000;
  for (int round = 0; round < 3; ++round) {
    for (uintptr_t i = 0; i < kStacks; ++i) {
      const Frames frames = Stack({0x1000 + i, 0x2000});
      const StackId stack = Keep(frames);
      for (int n = 0; n < 200; ++n) {
        ASSERT_EQ(Keep(frames), stack);
        stacks_->Release(stack);
      }
      stacks_->Release(stack);
    }
  }
  EXPECT_LE(stacks_->stats().stacks, 128u) << "as many as there are places";
  EXPECT_GT(stacks_->stats().stacks, 0u);
}

}  // namespace
}  // namespace tcmalloc
