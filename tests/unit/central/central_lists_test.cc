// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "central/central_lists.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "fakes/object_space.h"
#include "fakes/thread_sanitizer.h"
#include "size_class/size_classes.h"
#include "transfer/batch_source.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

thread_local uint32_t cpu_of_test = 0;
uint32_t CpuOfTest() { return cpu_of_test; }

using Lists = CentralLists<FakeSpanSource, CpuOfTest>;
static_assert(ChainSource<Lists>);

class CentralListsTest : public ::testing::Test {
 protected:
  static constexpr uint32_t kSize = 1024;

  explicit CentralListsTest(uint32_t most = 4) {
    lists_.Initialize(SizeClassFor(kSize), space_.spans, *space_.map, space_.codec, space_.arena,
                      most);
  }
  ~CentralListsTest() override {
    cpu_of_test = 0;
    lists_.CheckInvariants();
  }

  const SizeClassInfo& info() const { return kSizeClasses[SizeClassFor(kSize)]; }
  Objects FetchOn(uint32_t cpu, uint32_t wanted) {
    cpu_of_test = cpu;
    return space_.Objects(lists_.Fetch(wanted));
  }
  Objects FetchAllOn(uint32_t cpu, size_t count) {
    Objects objects;
    while (objects.size() < count) {
      const Objects more = FetchOn(cpu, static_cast<uint32_t>(count - objects.size()));
      if (more.empty()) break;
      objects.insert(objects.end(), more.begin(), more.end());
    }
    return objects;
  }
  void InsertOn(uint32_t cpu, const Objects& objects) {
    cpu_of_test = cpu;
    lists_.Insert(space_.MakeChain(objects));
  }
  Span* SpanOf(const void* object) const { return space_.map->FindInUse(object); }

  ObjectSpace space_;
  Lists lists_;
};

TEST_F(CentralListsTest, DividesUpToTheMostThatIsAllowed) {
  EXPECT_EQ(lists_.count(), 1u);
  for (const uint32_t count : {2u, 4u, 4u}) {
    lists_.Divide();
    EXPECT_EQ(lists_.count(), count);
  }
}

TEST_F(CentralListsTest, CountsTheBytesOfTheSpansOfACpu) {
  EXPECT_EQ(lists_.SpanBytes(), 0u);
  lists_.Divide();
  cpu_of_test = 1;
  const Chain chain = lists_.Fetch(1);
  EXPECT_EQ(lists_.SpanBytes(), SpanOf(ObjectAt(chain.head))->bytes());
  cpu_of_test = 0;
  EXPECT_EQ(lists_.SpanBytes(), 0u);
  lists_.Insert(chain);
  cpu_of_test = 1;
  EXPECT_EQ(lists_.SpanBytes(), 0u);
}

TEST_F(CentralListsTest, StaysOneWhereOnlyOneIsAllowed) {
  Lists one;
  one.Initialize(SizeClassFor(kSize), space_.spans, *space_.map, space_.codec, space_.arena);
  one.Divide();
  EXPECT_EQ(one.count(), 1u);
}

TEST_F(CentralListsTest, CpusTakeFromSpansOfTheirOwn) {
  lists_.Divide();
  const Objects first = FetchOn(0, 4);
  const Objects second = FetchOn(1, 4);
  ASSERT_FALSE(first.empty() || second.empty());
  EXPECT_NE(SpanOf(first[0]), SpanOf(second[0]));
  EXPECT_EQ(SpanOf(FetchOn(2, 1)[0]), SpanOf(first[0])) << "there are two lists";
}

TEST_F(CentralListsTest, ObjectsGoBackToTheListOfTheirSpan) {
  lists_.Divide();
  const Objects first = FetchAllOn(0, 4);
  const Objects second = FetchAllOn(1, 4);
  // Mixed, by a third CPU, and not all of a span.
  InsertOn(3, {first[0], second[1], first[2], second[3]});
  lists_.CheckInvariants();
  const Objects of_first = FetchOn(0, 2);
  EXPECT_EQ(of_first, (Objects{first[0], first[2]}));
  EXPECT_EQ(FetchOn(1, 2), (Objects{second[1], second[3]}));
}

TEST_F(CentralListsTest, ObjectsFromBeforeADivisionGoBackToTheFirst) {
  const Objects objects = FetchAllOn(1, 4);
  lists_.Divide();
  lists_.Divide();
  InsertOn(3, {objects[0], objects[1]});
  EXPECT_EQ(FetchOn(0, 2), (Objects{objects[0], objects[1]}));
}

TEST_F(CentralListsTest, DrainedSpansGoBackToThePageHeap) {
  lists_.Divide();
  Objects objects = FetchAllOn(0, info().objects);
  const Objects more = FetchAllOn(1, info().objects);
  objects.insert(objects.end(), more.begin(), more.end());
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  InsertOn(0, objects);
  EXPECT_EQ(lists_.stats().spans, 0u);
  EXPECT_EQ(space_.spans.spans_in_use(), 0u);
}

// What another CPU's list keeps is bounded.
TEST_F(CentralListsTest, TakesFromAListThatHasMuchBeforeItAsksForMemory) {
  lists_.Divide();
  Objects objects = FetchAllOn(0, 40 * size_t{info().objects});
  // Of each span, one object stays out.
  Objects freed;
  std::vector<Span*> seen;
  for (void* object : objects) {
    if (std::find(seen.begin(), seen.end(), SpanOf(object)) == seen.end()) {
      seen.push_back(SpanOf(object));
    } else {
      freed.push_back(object);
    }
  }
  InsertOn(0, freed);
  const size_t spans = space_.spans.spans_in_use();
  const size_t kept =
      std::max((size_t{64} << 10) / info().size, 2 * size_t{info().objects});  // objects
  ASSERT_GT(freed.size(), 2 * kept);
  EXPECT_EQ(FetchAllOn(1, freed.size() - kept).size(), freed.size() - kept);
  EXPECT_EQ(space_.spans.spans_in_use(), spans);
}

TEST_F(CentralListsTest, TakesTheLastOfAnotherListIfNoMemoryCanBeHad) {
  lists_.Divide();
  const Objects objects = FetchAllOn(0, info().objects);
  InsertOn(0, {objects[0]});
  space_.spans.fail = [] { return true; };
  EXPECT_EQ(FetchOn(1, 1), (Objects{objects[0]}));
  EXPECT_TRUE(FetchOn(1, 1).empty());
}

TEST_F(CentralListsTest, ALineComesFromAnyList) {
  lists_.Divide();
  const Objects objects = FetchOn(0, 1);
  cpu_of_test = 1;
  const Objects line = space_.Objects(lists_.FetchLine());
  ASSERT_FALSE(line.empty());
  EXPECT_EQ(SpanOf(line[0]), SpanOf(objects[0]));
  EXPECT_EQ(space_.spans.spans_in_use(), 1u);
}

// Threads take from spans of their own only while there are others.
TEST_F(CentralListsTest, TakesFromASpanOfAnotherThreadIfNoMemoryCanBeHad) {
  Lists lists;
  lists.Initialize(SizeClassFor(64), space_.spans, *space_.map, space_.codec, space_.arena, 2);
  lists.Divide();
  ASSERT_FALSE(lists.Fetch(32).empty());
  ASSERT_GT(lists.stats().uncarved_objects, 0u);
  space_.spans.fail = [] { return true; };
  std::thread([&] {
    cpu_of_test = 1;
    EXPECT_FALSE(lists.Fetch(32).empty());
  }).join();
}

// Bits of spans that went back serve any list.
TEST_F(CentralListsTest, TakesBitsThatASpanOfAnotherListHad) {
  Lists lists;
  lists.Initialize(SizeClassFor(64), space_.spans, *space_.map, space_.codec, space_.arena, 2);
  lists.Divide();
  cpu_of_test = 0;
  lists.Insert(lists.Fetch(32));
  ASSERT_EQ(space_.spans.spans_in_use(), 0u);
  space_.ExhaustMetadata();
  cpu_of_test = 1;
  const Span* span = SpanOf(space_.Objects(lists.Fetch(32)).front());
  EXPECT_EQ(span->capacity, kSizeClasses[SizeClassFor(64)].objects) << "none has bits in it";
}

// Spans go from class to class, and a list may look at one that it does not own.
TEST_F(CentralListsTest, ListsOfDifferentClassesHaveDifferentNames) {
  Lists others;
  others.Initialize(SizeClassFor(64), space_.spans, *space_.map, space_.codec, space_.arena, 4);
  lists_.Divide();
  others.Divide();
  std::set<uint16_t> names;
  for (const uint32_t cpu : {0u, 1u}) {
    names.insert(SpanOf(FetchOn(cpu, 1)[0])->central);
    names.insert(SpanOf(space_.Objects(others.Fetch(1))[0])->central);
  }
  EXPECT_EQ(names.size(), 4u);
}

TEST_F(CentralListsTest, AddsUpAllLists) {
  lists_.Divide();
  const size_t given_out = FetchOn(0, 3).size() + FetchOn(1, 3).size();
  const CentralStats stats = lists_.stats();
  EXPECT_EQ(stats.spans, 2u);
  EXPECT_EQ(stats.allocated_objects, given_out);
  EXPECT_EQ(stats.uncarved_objects, 2 * size_t{info().objects} - given_out);
  EXPECT_EQ(stats.untouched_objects, stats.uncarved_objects);
  EXPECT_EQ(stats.span_bytes, 2 * SpanOf(FetchOn(0, 1)[0])->bytes());
}

TEST_F(CentralListsTest, KnowsFreeObjectsOfAllLists) {
  lists_.Divide();
  const Objects objects = FetchAllOn(1, 4);
  InsertOn(0, {objects[1]});
  EXPECT_TRUE(lists_.IsFree(objects[1]));
  EXPECT_FALSE(lists_.IsFree(objects[2]));
}

using CentralListsDeathTest = CentralListsTest;

TEST_F(CentralListsDeathTest, ObjectInsertedTwice) {
  lists_.Divide();
  const Objects objects = FetchAllOn(1, 4);
  InsertOn(1, {objects[1]});
  EXPECT_DEATH(InsertOn(0, {objects[1]}), "double free|corrupted");
}

TEST_F(CentralListsDeathTest, ObjectOfASpanThatWentBack) {
  lists_.Divide();
  const Objects objects = FetchAllOn(1, info().objects);
  InsertOn(1, objects);
  EXPECT_DEATH(InsertOn(0, {objects[1]}), "tcmalloc");
}

// Objects that threads of all CPUs exchange, while there become more lists.
TEST_F(CentralListsTest, Churn) {
  constexpr int kThreads = 4;
  // Each step takes long there, and threads meet less.
  constexpr int kSteps = kThreadSanitizer ? 2000 : 50'000;
  std::mutex mutex;
  Objects shared;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&, i] {
      std::mt19937_64 random(i);
      for (int step = 0; step < kSteps; ++step) {
        cpu_of_test = static_cast<uint32_t>(random());
        if (i == 0 && step % (kSteps / 4) == 0) lists_.Divide();
        const uint64_t grow = step / 300 % 2 == 0 ? 6 : 3;
        Objects objects;
        if (random() % 10 < grow) {
          objects = space_.Objects(lists_.Fetch(1 + static_cast<uint32_t>(random() % 40)));
          for (void* object : objects) std::fill_n(static_cast<void**>(object), 8, object);
          const std::lock_guard guard(mutex);
          shared.insert(shared.end(), objects.begin(), objects.end());
        } else {
          {
            const std::lock_guard guard(mutex);
            for (uint64_t n = random() % 40; n > 0 && !shared.empty(); --n) {
              std::swap(shared[random() % shared.size()], shared.back());
              objects.push_back(shared.back());
              shared.pop_back();
            }
          }
          for (void* object : objects) {
            EXPECT_EQ(
                std::count(static_cast<void**>(object), static_cast<void**>(object) + 8, object),
                8);
          }
          if (!objects.empty()) lists_.Insert(space_.MakeChain(objects));
        }
        if (random() % 100 == 0) lists_.CheckInvariants();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(lists_.count(), 4u);
  if (!shared.empty()) InsertOn(0, shared);
  EXPECT_EQ(lists_.stats().allocated_objects, 0u);
  EXPECT_EQ(lists_.stats().free_objects, 0u);
}

// A crowd that was there before a division says nothing of the lists that there are now.
TEST_F(CentralListsTest, ThreadsThatOftenWaitForEachOtherGetAnotherList) {
  // Each step takes long there, and threads meet less.
  constexpr int kSteps = kThreadSanitizer ? 2000 : 50'000;
  std::vector<std::thread> threads;
  for (uint32_t i = 0; i < 4; ++i) {
    threads.emplace_back([this, i] {
      cpu_of_test = i;
      for (int step = 0; step < kSteps && lists_.count() == 1; ++step) {
        lists_.Insert(lists_.Fetch(32));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  if (lists_.count() == 1) GTEST_SKIP() << "other programs kept the threads from meeting";
  EXPECT_EQ(lists_.count(), 2u);
}

TEST_F(CentralListsTest, AThreadAloneKeepsOneList) {
  for (int i = 0; i < 1000; ++i) lists_.Insert(lists_.Fetch(32));
  EXPECT_EQ(lists_.count(), 1u);
}

}  // namespace
}  // namespace tcmalloc::testing
