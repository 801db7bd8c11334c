// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Several threads at once, for the thread sanitizer and for the invariants.

#include <gtest/gtest.h>

#include <atomic>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "test_heap.h"

namespace tcmalloc::testing {
namespace {

constexpr int kThreads = 4;
constexpr int kSteps = 4000;
constexpr uint64_t kStepsPerCheck = 50;  // of all threads together

// Spans that any thread may delete, each stamped with its own address.
class SharedSpans {
 public:
  void Put(Span* span) {
    *reinterpret_cast<Span**>(span->start()) = span;
    *(reinterpret_cast<Span**>(span->start() + span->bytes()) - 1) = span;
    std::lock_guard<std::mutex> guard(mutex_);
    spans_.push_back(span);
  }

  // Null if there is none.
  Span* Take(uint64_t random) {
    Span* span = nullptr;
    {
      std::lock_guard<std::mutex> guard(mutex_);
      if (spans_.empty()) return nullptr;
      std::swap(spans_[random % spans_.size()], spans_.back());
      span = spans_.back();
      spans_.pop_back();
    }
    EXPECT_EQ(*reinterpret_cast<Span**>(span->start()), span);
    EXPECT_EQ(*(reinterpret_cast<Span**>(span->start() + span->bytes()) - 1), span);
    return span;
  }

 private:
  std::mutex mutex_;
  std::vector<Span*> spans_;
};

template <typename Heap>
void Churn(Heap* heap, SharedSpans* spans, uint64_t seed, std::atomic<uint64_t>* steps) {
  std::mt19937_64 random(seed);
  for (int step = 0; step < kSteps; ++step, steps->fetch_add(1, std::memory_order_relaxed)) {
    const Length n(1 + random() % (random() % 8 == 0 ? 300 : 10));
    switch (random() % 8) {
      case 0:
      case 1:
      case 2:
        if (Span* span = (*heap)->New(n)) spans->Put(span);
        break;
      case 3:
        if (Span* span = (*heap)->NewAligned(n, Length(uintptr_t{1} << random() % 5))) {
          spans->Put(span);
        }
        break;
      case 4:
        if (Span* span = spans->Take(random())) {
          (*heap)->TryExtend(span, span->length + n);
          spans->Put(span);
        }
        break;
      case 5:
        if (Span* span = spans->Take(random())) {
          (*heap)->Truncate(span, Length(1 + random() % span->length.pages()));
          spans->Put(span);
        }
        break;
      default:
        if (Span* span = spans->Take(random())) (*heap)->Delete(span);
        break;
    }
    if (random() % 64 == 0) (*heap)->ReleaseAtLeast(n);
  }
}

// Another thread calls beside() all the time. The threads go on until is_enough(), because a busy
// machine may let the other one call it seldom, but not for ever.
template <typename Heap, typename F, typename G>
void RunThreads(Heap* heap, F beside, G is_enough) {
  constexpr uint64_t kMostChurns = 100;
  SharedSpans spans;
  std::atomic<uint64_t> steps{0};
  std::vector<std::thread> threads;
  for (uint64_t i = 1; i <= kThreads; ++i) {
    threads.emplace_back([&, i] {
      uint64_t churns = 0;
      do {
        Churn(heap, &spans, i + churns * kThreads, &steps);
      } while (++churns < kMostChurns && !is_enough());
    });
  }
  std::atomic<bool> done{false};
  // Readers of the map and of statistics take part without owning anything. The checks take the
  // lock for long. If they came one right after the other, nobody else would get it.
  std::thread reader([&] {
    while (!done) {
      const uint64_t next_check = steps + kStepsPerCheck;
      beside();
      const PageHeapStats stats = (*heap)->stats();
      EXPECT_EQ(stats.system, stats.in_use() + stats.free + stats.returned + stats.in_transit);
      (*heap)->CheckInvariants();
      while (steps < next_check && !done) std::this_thread::yield();
    }
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  reader.join();
  while (Span* span = spans.Take(0)) (*heap)->Delete(span);
  (*heap)->CheckInvariants();
  EXPECT_EQ((*heap)->stats().in_use(), Length(0));
  EXPECT_EQ((*heap)->stats().in_transit, Length(0));
}

template <typename Heap>
void RunThreads(Heap* heap) {
  RunThreads(heap, [] {}, [] { return true; });
}

template <typename Heap>
class PageHeapThreads : public ::testing::Test {};
using Heaps = ::testing::Types<TestHeap, HugeTestHeap>;
TYPED_TEST_SUITE(PageHeapThreads, Heaps);

TYPED_TEST(PageHeapThreads, Churn) {
  TypeParam heap;
  RunThreads(&heap);
}

TYPED_TEST(PageHeapThreads, ChurnWithReleaseInDelete) {
  TypeParam heap;
  heap->set_release_rate(100);
  RunThreads(&heap);
  EXPECT_GT(heap->stats().releases, 0u);
}

TYPED_TEST(PageHeapThreads, ChurnWithAggressiveDecommit) {
  TypeParam heap;
  heap->set_aggressive_decommit(true);
  RunThreads(&heap);
}

TYPED_TEST(PageHeapThreads, ChurnAtTheLimit) {
  TypeParam heap;
  heap->set_limit(Length(2000));
  RunThreads(&heap);
}

// Time passes, and the kernel is told about hugepages.
TEST(HugePageHeapThreads, ChurnWithHugepages) {
  HugeTestHeap heap;
  heap->set_hugepages({.mode = HugepageMode::kAlways,
                       .may_stall = true,
                       .max_ptes_none = 511,
                       .hugepage_bytes = kHugePageSize});
  heap->set_release_half_life(100);
  uint64_t now = 1;
  const auto has_hugepages = [&heap] {
    const auto stats = heap->huge_stats();
    return stats.asked_for + stats.collapses > 0;
  };
  RunThreads(&heap, [&] { heap->ReleaseUnused(now += 10, Length(100)); }, has_hugepages);
  EXPECT_TRUE(has_hugepages());
}

TYPED_TEST(PageHeapThreads, ChurnWithoutAddressSpaceLeft) {
  TypeParam heap(size_t{8} << 20);
  RunThreads(&heap);
  EXPECT_GT(heap->stats().growth_failures, 0u);
}

}  // namespace
}  // namespace tcmalloc::testing
