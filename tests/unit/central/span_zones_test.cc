// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/span_zones.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <barrier>
#include <functional>
#include <thread>
#include <utility>
#include <vector>

#include "fakes/turns.h"
#include "page_heap/span_source.h"
#include "pages/page_types.h"
#include "pages/span.h"

namespace tcmalloc::testing {
namespace {

// Notes how it is asked, and hands out spans one after the other.
struct FakePageHeap {
  Span* New(Length n) {
    ++plain;
    return Next(n);
  }
  Span* NewNear(Length n, PageId near) {
    nears.push_back(near);
    if (on_near) std::exchange(on_near, nullptr)();
    return fail ? nullptr : Next(n);
  }
  Span* NewAligned(Length n, Length) { return New(n); }
  void Delete(Span*) {}

  Span* Next(Length n) {
    Span& span = spans[count++];
    span.first = end;
    span.length = n;
    end = span.end();
    return &span;
  }

  Span spans[64];
  int count = 0;
  PageId end = PageId(1000);
  int plain = 0;
  std::vector<PageId> nears;
  std::function<void()> on_near;  // called by the next NewNear
  bool fail = false;
};
static_assert(PlacingSpanSource<FakePageHeap>);
static_assert(SpanSource<SpanZones<FakePageHeap>>);

constexpr Length kOne(1);

class SpanZonesTest : public ::testing::Test {
 protected:
  FakePageHeap heap_;
  SpanZones<FakePageHeap> zones_{heap_};
};

TEST_F(SpanZonesTest, OneThreadHasNoZones) {
  zones_.New(kOne);
  zones_.New(kOne);
  EXPECT_EQ(heap_.plain, 2);
}

TEST_F(SpanZonesTest, EachThreadGoesOnBehindItsOwnSpan) {
  std::vector<PageId> ends[2];
  TakeTurns(3, [&](int thread) { ends[thread].push_back(zones_.New(kOne)->end()); });
  EXPECT_EQ(heap_.plain, 1);
  const std::vector<PageId> expected = {PageId(), ends[0][0], ends[1][0], ends[0][1], ends[1][1]};
  EXPECT_EQ(heap_.nears, expected);
}

TEST_F(SpanZonesTest, LongSpansAreInNoZone) {
  TakeTurns(2, [&](int) { zones_.New(Length(100)); });
  EXPECT_EQ(heap_.plain, 4);
}

TEST_F(SpanZonesTest, AThreadTakesThePlaceOfTheOneThatIsForgotten) {
  // All of them live until the last one has asked.
  constexpr int kThreads = 40;
  std::barrier barrier(kThreads);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      for (int turn = 0; turn < kThreads; ++turn) {
        if (turn == i) zones_.New(kOne);
        barrier.arrive_and_wait();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  const auto begun = std::count(heap_.nears.begin(), heap_.nears.end(), PageId());
  // The first thread asked before there were zones.
  EXPECT_EQ(begun, 15);
}

TEST_F(SpanZonesTest, AThreadThatWaitsForPagesHoldsUpNoOther) {
  TakeTurns(1, [&](int) { zones_.New(kOne); });
  heap_.on_near = [&] { std::thread([&] { zones_.New(kOne); }).join(); };
  zones_.New(kOne);
  EXPECT_EQ(heap_.count, 4);
}

TEST_F(SpanZonesTest, AFailedRequestChangesNoZone) {
  TakeTurns(3, [&](int thread) {
    heap_.fail = heap_.nears.size() == 1;
    EXPECT_EQ(zones_.New(kOne) == nullptr, heap_.fail) << thread;
  });
  EXPECT_EQ(heap_.nears[1], heap_.nears[3]);
}

}  // namespace
}  // namespace tcmalloc::testing
