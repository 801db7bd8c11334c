// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A heap that outgrows its first address window.

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstdint>
#include <thread>
#include <vector>

#include "fakes/current_cache.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr Length kBlock = Length::FromBytesCeil(size_t{1} << 30);

// True if the kernel lets a process have more addresses than memory, as it does by default.
bool AddressesAbound() {
  constexpr size_t kBytes = size_t{64} << 30;
  void* const probe = ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (probe != MAP_FAILED) ::munmap(probe, kBytes);
  return probe != MAP_FAILED;
}

void* Allocate(uint8_t c) {
  const Entry entry = EnterSlowPath();
  void* const object = CurrentCache()->AllocateSlow(c, kSizeClasses[c].size);
  LeaveSlowPath(entry);
  return object;
}

class WindowGrowthTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!AddressesAbound()) GTEST_SKIP() << "the kernel commits every address";
    heap.EnsureInitialized();
    LeaveSlowPath(EnterSlowPath());
  }
  void TearDown() override {
    for (Span* span : spans_) heap.page_heap().Delete(span);
  }

  // Takes memory that nobody touches until some of it lies beyond `limit`.
  bool PassLimit(uintptr_t limit) {
    while (spans_.empty() || spans_.back()->end().address() <= limit) {
      Span* const span = heap.page_heap().New(kBlock);
      if (span == nullptr) return false;
      spans_.push_back(span);
    }
    return true;
  }

 private:
  std::vector<Span*> spans_;
};

TEST_F(WindowGrowthTest, SmallObjectsAreServedByTheFastPathsEverywhere) {
  const uintptr_t first_limit = heap.page_map().window_limit();
  if (first_limit >= kLargestWindow) GTEST_SKIP() << "the first window is the largest";
  const int64_t first_link_limit = current_thread->link_limit;
  ASSERT_TRUE(PassLimit(first_limit)) << "no addresses";
  EXPECT_GT(heap.page_map().window_limit(), first_limit);
  EXPECT_EQ(heap.memory().stats().outside_window, 0u);
  EXPECT_EQ(heap.codec().limit(),
            static_cast<int64_t>((uint64_t{1} << 63) + heap.page_map().window_limit() / 8));

  // A new span of each class, more than the memory below the old limit can have left over.
  constexpr uint8_t kClass = SizeClassFor(kMaxSmallSize);
  std::vector<void*> objects;
  while (objects.empty() || reinterpret_cast<uintptr_t>(objects.back()) < first_limit) {
    objects.push_back(Allocate(kClass));
    ASSERT_NE(objects.back(), nullptr);
    ASSERT_LT(objects.size(), 100'000u);
  }
  EXPECT_GT(current_thread->link_limit, first_link_limit);
  EXPECT_EQ(heap.page_map().window()[PageId::Containing(objects.back()).index()], kClass);
  EXPECT_TRUE(heap.codec().InWindow(ReferenceTo(objects.back())));
  EXPECT_TRUE(CurrentCache()->TryFree(objects.back()));
  objects.pop_back();
  const Entry entry = EnterSlowPath();
  for (void* object : objects) CurrentCache()->FreeSlow(object, kClass);
  CurrentCache()->Flush();
  LeaveSlowPath(entry);
}

}  // namespace
}  // namespace tcmalloc::testing
