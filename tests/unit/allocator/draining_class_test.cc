// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Remains of a size class when a program uses it less.

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <random>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "fakes/one_cpu.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr uint8_t kClass = SizeClassFor(80);
constexpr size_t kAtFirst = 100'000;
constexpr size_t kLater = kAtFirst / 4;
constexpr uint64_t kSurvivorPercent = 5;

// Blocks that die in the order in which they were born, but for a few that live once more.
class Queue {
 public:
  ~Queue() {
    while (!blocks_.empty()) FreeOldest();
  }

  void Allocate() {
    void* block = tcmalloc::Allocate(kSizeClasses[kClass].size);
    ASSERT_NE(block, nullptr);
    blocks_.push_back(block);
  }
  void Age() {
    if (random_() % 100 >= kSurvivorPercent) return FreeOldest();
    blocks_.push_back(blocks_.front());
    blocks_.pop_front();
  }
  // Ages blocks until only `count` are left.
  void ShrinkTo(size_t count) {
    while (blocks_.size() > count) Age();
  }
  size_t size() const { return blocks_.size(); }

 private:
  void FreeOldest() {
    Deallocate(blocks_.front());
    blocks_.pop_front();
  }

  std::deque<void*> blocks_;
  std::mt19937_64 random_{1};
};

TEST(DrainingClassTest, ItsSpansFollowWhatIsInUse) {
  // A thread that moves to another CPU gets first what it put away first, and spans drain later.
  ASSERT_TRUE(StayOnThisCpu());
  Queue queue;
  while (queue.size() < kAtFirst) queue.Allocate();
  const size_t spans_at_first = heap.lists().central(kClass).stats().spans;
  // It shrinks slowly, and goes on with as many blocks for as long as each of them lives.
  while (queue.size() > kLater) {
    const size_t left = queue.size() - 3;
    queue.Allocate();
    queue.ShrinkTo(left);
  }
  for (size_t i = 0; i < 2 * kLater; ++i) {
    queue.Allocate();
    queue.ShrinkTo(kLater);
  }
  const CentralStats stats = heap.lists().central(kClass).stats();
  EXPECT_LE(stats.spans, spans_at_first / 2)
      << stats.allocated_objects << " objects out, " << stats.free_objects << " free";
}

}  // namespace
}  // namespace tcmalloc::testing
