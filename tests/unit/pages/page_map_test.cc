// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "pages/page_map.h"

#include <gtest/gtest.h>

#include <atomic>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include "fakes/fake_metadata.h"

namespace tcmalloc::testing {
namespace {

constexpr uintptr_t kPages = uintptr_t{1} << (kAddressBits - kPageShift);
// The first page of which the map knows less quickly.
constexpr uintptr_t kFirstFarPage = uintptr_t{1} << 25;

class PageMapTest : public ::testing::Test {
 protected:
  Span* NewSpan(uintptr_t first, uintptr_t length, Span::State state = Span::State::kLarge) {
    Span& span = spans_.emplace_back();
    span.first = PageId(first);
    span.length = Length(length);
    span.state = state;
    return &span;
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);

 private:
  std::deque<Span> spans_;
};

TEST_F(PageMapTest, NothingIsThereAtFirst) {
  for (uintptr_t page : {uintptr_t{0}, uintptr_t{1}, kPages - 1, kPages, UINTPTR_MAX}) {
    EXPECT_EQ(map_->Get(PageId(page)), nullptr);
  }
  EXPECT_EQ(metadata_.calls(), 0u);
}

TEST_F(PageMapTest, Any64BitValueMayBeLookedUp) {
  Span* span = NewSpan(5000, 10);
  ASSERT_TRUE(map_->Ensure(span->first, span->length));
  map_->SetEnds(span);
  std::mt19937_64 random(1);
  for (int i = 0; i < 1'000'000; ++i) {
    const uint64_t value = random() >> random() % 64;
    const Span* found = map_->FindInUse(reinterpret_cast<void*>(value));
    ASSERT_EQ(found, PageId(value >> kPageShift) == span->first ||
                             PageId(value >> kPageShift) == span->end() - Length(1)
                         ? span
                         : nullptr);
  }
}

TEST_F(PageMapTest, SetEndsEntersFirstAndLastPage) {
  Span* span = NewSpan(5000, 10);
  ASSERT_TRUE(map_->Ensure(span->first, span->length));
  map_->SetEnds(span);
  EXPECT_EQ(map_->Get(PageId(4999)), nullptr);
  EXPECT_EQ(map_->Get(PageId(5000)), span);
  EXPECT_EQ(map_->Get(PageId(5001)), nullptr);
  EXPECT_EQ(map_->Get(PageId(5009)), span);
  EXPECT_EQ(map_->Get(PageId(5010)), nullptr);
}

TEST_F(PageMapTest, EnsureReachesOverNodesAndToTheEdges) {
  // Leaves hold 2^12 pages and middle nodes 2^24.
  const std::vector<std::pair<uintptr_t, uintptr_t>> ranges = {{0, 1},
                                                               {4095, 2},
                                                               {(1 << 24) - 1, 2},
                                                               {(3 << 12) + 5, 3 << 12},
                                                               {kFirstFarPage - 1, 2},
                                                               {kFirstFarPage + (1 << 24) - 1, 2},
                                                               {kPages - 1, 1}};
  for (const auto& [first, length] : ranges) {
    ASSERT_TRUE(map_->Ensure(PageId(first), Length(length)));
    for (uintptr_t page = first; page < first + length; ++page) {
      Span* span = NewSpan(page, 1);
      map_->Set(PageId(page), span);
      ASSERT_EQ(map_->Get(PageId(page)), span);
    }
  }
}

TEST_F(PageMapTest, NoRoomBeyondTheAddressSpace) {
  EXPECT_FALSE(map_->Ensure(PageId(kPages), Length(1)));
  EXPECT_FALSE(map_->Ensure(PageId(kPages - 1), Length(2)));
}

TEST_F(PageMapTest, EnsureFailsWithoutMemoryAndCanBeRepeated) {
  metadata_.exhausted = true;
  EXPECT_FALSE(map_->Ensure(PageId(5000), Length(10)));
  metadata_.exhausted = false;
  EXPECT_TRUE(map_->Ensure(PageId(5000), Length(10)));
}

// Expects that the map knows of `page` as the one at `place` in a span of small objects.
void ExpectSmallEntry(PageMap::Entry entry, PageId page, const Span* span, size_t place) {
  EXPECT_EQ(entry.span(), span);
  EXPECT_EQ(entry.size_class(), span->size_class);
  EXPECT_EQ(entry.OffsetOf(page.start()), Length(place).bytes());
  EXPECT_EQ(entry.OffsetOf(page.start() + kPageSize - 1), Length(place + 1).bytes() - 1);
}

TEST_F(PageMapTest, EntriesOfSmallSpansHaveClassAndPlace) {
  constexpr uintptr_t kLength = PageMap::Entry::kMostPlaces;
  for (const uintptr_t first : {uintptr_t{5000}, kFirstFarPage - kLength / 2, kPages - kLength}) {
    Span* span = NewSpan(first, kLength, Span::State::kSmall);
    span->size_class = 255;
    ASSERT_TRUE(map_->Ensure(span->first, span->length));
    map_->RegisterSmall(span);
    for (size_t place = 0; place < kLength; ++place) {
      const PageId page = span->first + Length(place);
      ExpectSmallEntry(map_->EntryOf(page), page, span, place);
      const bool is_near = page.index() < kFirstFarPage;
      ASSERT_EQ(map_->NearEntryOf(page).word(), is_near ? map_->EntryOf(page).word() : 0) << place;
    }
    map_->UnregisterSmall(span);
    for (size_t place = 0; place < kLength; ++place) {
      const PageMap::Entry entry = map_->EntryOf(span->first + Length(place));
      ASSERT_EQ(entry.span(), span);
      ASSERT_EQ(entry.size_class(), 0);
    }
  }
}

TEST_F(PageMapTest, HiddenEntriesStayHiddenFromFastPaths) {
  Span* span = NewSpan(5000, 10, Span::State::kSmall);
  span->size_class = 7;
  ASSERT_TRUE(map_->Ensure(span->first, span->length));
  map_->RegisterSmall(span);
  ASSERT_EQ(map_->NearEntryOf(span->first).size_class(), 7);
  map_->HideNearEntries();
  // The heap grows in modes as well.
  ASSERT_TRUE(map_->Ensure(PageId(kFirstFarPage - 10), Length(10)));
  EXPECT_EQ(map_->NearEntryOf(span->first).word(), 0u);
  EXPECT_EQ(map_->EntryOf(span->first).size_class(), 7);
}

TEST_F(PageMapTest, EntriesOfOtherSpansHaveNoClass) {
  Span* span = NewSpan(5000, 10);
  span->size_class = 7;
  ASSERT_TRUE(map_->Ensure(span->first, span->length));
  map_->Register(span);
  for (PageId page = span->first; page < span->end(); ++page) {
    EXPECT_EQ(map_->EntryOf(page).span(), span);
    EXPECT_EQ(map_->EntryOf(page).size_class(), 0);
  }
  for (const uintptr_t page : {uintptr_t{4999}, kFirstFarPage, kPages, UINTPTR_MAX}) {
    EXPECT_EQ(map_->EntryOf(PageId(page)).word(), 0u);
    EXPECT_EQ(map_->NearEntryOf(PageId(page)).word(), 0u);
  }
}

TEST_F(PageMapTest, FindInUseRejectsStaleEntries) {
  Span* span = NewSpan(5000, 10);
  ASSERT_TRUE(map_->Ensure(span->first, span->length));
  map_->RegisterSmall(span);
  EXPECT_EQ(map_->FindInUse(PageId(5009).start() + 17), span);
  span->length = Length(9);
  EXPECT_EQ(map_->FindInUse(PageId(5009).start()), nullptr);
  span->length = Length(10);
  for (Span::State state : {Span::State::kUnused, Span::State::kFree, Span::State::kReturned,
                            Span::State::kInTransit}) {
    span->state = state;
    EXPECT_EQ(map_->FindInUse(PageId(5005).start()), nullptr);
  }
}

TEST_F(PageMapTest, FindInUseBelowSkipsFreeStaleAndMissingPages) {
  constexpr uintptr_t kFar = 5'000'000;  // hundreds of leaves that are not there lie before it
  Span* far_below = NewSpan(5000, 10);
  Span* unused = NewSpan(kFar, 10, Span::State::kFree);
  Span* moved = NewSpan(kFar + 10, 10);
  for (Span* span : {far_below, unused, moved}) {
    ASSERT_TRUE(map_->Ensure(span->first, span->length));
    map_->SetEnds(span);
  }
  moved->first = PageId(kFar + 100);
  const PageId page(kFar + 20);
  EXPECT_EQ(map_->FindInUseBelow(page, Length(kFar)), far_below);
  EXPECT_EQ(map_->FindInUseBelow(page, Length(kFar + 21 - 5010)), far_below);
  EXPECT_EQ(map_->FindInUseBelow(page, Length(kFar + 20 - 5010)), nullptr);
  EXPECT_EQ(map_->FindInUseBelow(far_below->first, Length::Max()), nullptr);
  EXPECT_EQ(map_->FindInUseBelow(PageId(UINTPTR_MAX), Length(100)), nullptr);
}

class PageMapWindowTest : public PageMapTest {
 protected:
  static constexpr uintptr_t kWindowPages = 10'000;

  PageMapWindowTest() { map_->SetWindow(table_.data(), kWindowPages << kPageShift); }

  Span* NewSmall(uintptr_t first, uintptr_t length, uint8_t size_class) {
    Span* span = NewSpan(first, length, Span::State::kSmall);
    span->size_class = size_class;
    EXPECT_TRUE(map_->Ensure(span->first, span->length));
    map_->RegisterSmall(span);
    return span;
  }

  std::vector<uint8_t> table_ = std::vector<uint8_t>(kWindowPages);
};

TEST_F(PageMapWindowTest, EveryPageOfASmallSpanIsEntered) {
  Span* span = NewSmall(5000, 4, 9);
  for (uintptr_t page = 4999; page <= 5004; ++page) {
    const bool inside = span->Contains(PageId(page));
    EXPECT_EQ(map_->window()[page], inside ? 9 : 0);
    EXPECT_EQ(map_->Get(PageId(page)), inside ? span : nullptr);
  }
}

TEST_F(PageMapWindowTest, UnregisteredSpanHasNoClass) {
  Span* span = NewSmall(5000, 4, 9);
  NewSmall(5004, 1, 3);
  map_->UnregisterSmall(span);
  for (uintptr_t page = 5000; page < 5004; ++page) EXPECT_EQ(map_->window()[page], 0);
  EXPECT_EQ(map_->window()[5004], 3);
}

TEST_F(PageMapWindowTest, SpansAtAndBeyondTheLimit) {
  NewSmall(kWindowPages - 2, 2, 9);
  EXPECT_EQ(map_->window()[kWindowPages - 1], 9);
  // Not in the window, and found all the same.
  Span* beyond = NewSmall(kWindowPages, 4, 9);
  EXPECT_EQ(map_->Get(PageId(kWindowPages + 3)), beyond);
  map_->UnregisterSmall(beyond);
}

TEST_F(PageMapWindowTest, GrowsUnderSpansThatItDidNotHave) {
  map_->SetWindow(table_.data(), (kWindowPages - 100) << kPageShift);
  Span* before = NewSmall(kWindowPages - 50, 4, 9);
  Span* across = NewSmall(kWindowPages - 102, 4, 9);
  EXPECT_EQ(map_->window()[kWindowPages - 102], 0);
  map_->ExtendWindow(kWindowPages << kPageShift);
  EXPECT_EQ(map_->window_limit(), kWindowPages << kPageShift);
  NewSmall(kWindowPages - 2, 2, 7);
  EXPECT_EQ(map_->window()[kWindowPages - 1], 7);
  // Objects of these have no class there, which sends them to the slow path.
  EXPECT_EQ(map_->window()[kWindowPages - 50], 0);
  map_->UnregisterSmall(before);
  map_->UnregisterSmall(across);
  map_->RegisterSmall(before);
  EXPECT_EQ(map_->window()[kWindowPages - 47], 9);
}

// Random registration against a plain map, with stale entries wherever a span has gone.
TEST_F(PageMapWindowTest, AgreesWithAModel) {
  std::mt19937_64 random(1);
  std::map<uintptr_t, Span*> spans;  // by first page
  std::vector<Span*> owner(kWindowPages, nullptr);
  for (int step = 0; step < 20000; ++step) {
    const uintptr_t first = random() % (kWindowPages - 40);
    const uintptr_t length = 1 + random() % 40;
    if (random() % 2 == 0) {
      bool taken = false;
      for (uintptr_t page = first; page < first + length; ++page) taken |= owner[page] != nullptr;
      if (taken) continue;
      Span* span = NewSmall(first, length, static_cast<uint8_t>(1 + random() % 200));
      std::fill_n(owner.begin() + static_cast<long>(first), length, span);
      spans[first] = span;
    } else if (auto it = spans.lower_bound(first); it != spans.end()) {
      Span* span = it->second;
      map_->UnregisterSmall(span);
      span->state = Span::State::kUnused;
      std::fill_n(owner.begin() + static_cast<long>(it->first), span->length.pages(), nullptr);
      spans.erase(it);
    }
    const uintptr_t page = random() % kWindowPages;
    ASSERT_EQ(map_->FindInUse(PageId(page).start()), owner[page]);
    ASSERT_EQ(map_->window()[page], owner[page] != nullptr ? uint8_t{owner[page]->size_class} : 0);
  }
}

TEST_F(PageMapTest, ReadersNeedNoLock) {
  constexpr uintptr_t kFirst = uintptr_t{1} << 24;
  constexpr uintptr_t kCount = 20'000;
  std::atomic<uintptr_t> published{kFirst};
  Span* span = NewSpan(kFirst, kCount);
  std::thread reader([&] {
    std::mt19937_64 random(1);
    uintptr_t end = kFirst;
    while (end < kFirst + kCount) {
      end = published.load(std::memory_order_acquire);
      if (end > kFirst) {
        ASSERT_EQ(map_->Get(PageId(kFirst + random() % (end - kFirst))), span);
      }
      // Nodes may appear at any time under a wild pointer.
      const Span* wild = map_->Get(PageId(kFirst + random() % kCount));
      ASSERT_TRUE(wild == nullptr || wild == span);
    }
  });
  for (uintptr_t page = kFirst; page < kFirst + kCount; ++page) {
    ASSERT_TRUE(map_->Ensure(PageId(page), Length(1)));
    map_->Set(PageId(page), span);
    published.store(page + 1, std::memory_order_release);
  }
  reader.join();
}

}  // namespace
}  // namespace tcmalloc::testing
