// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The page map beside a model of it: a map of runs. See replay.h.

#ifndef TCMALLOC_TESTS_MODEL_PAGE_MAP_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_PAGE_MAP_MACHINE_H_

#include <gtest/gtest.h>

#include <cstdint>
#include <deque>
#include <iterator>
#include <map>
#include <memory>
#include <vector>

#include "fakes/fake_metadata.h"
#include "model/replay.h"
#include "pages/page_map.h"

namespace tcmalloc::testing {

class PageMapMachine {
 public:
  enum Op : unsigned { kAddSmall, kAddLarge, kRemove, kLookUp };
  static constexpr const char* kNames[] = {"kAddSmall", "kAddLarge", "kRemove", "kLookUp"};

  PageMapMachine() { map_->SetWindow(table_.data(), kWindowPages << kPageShift); }

  void Do(const Action& action) {
    switch (action.op) {
      case kAddSmall:
        return Add(action.a, action.b, Span::State::kSmall);
      case kAddLarge:
        return Add(action.a, action.b, Span::State::kLarge);
      case kRemove:
        return Remove(action.a);
      case kLookUp:
        return LookUp(PageId(FirstPage(action.a) + action.b % 64));
    }
  }

  void CheckAll() {
    for (const auto& [first, span] : spans_) {
      LookUp(first);
      LookUp(span->end() - Length(1));
      LookUp(span->end());
      LookUp(first - Length(1));
      LookUp(first + Length(span->length.pages() / 2));
    }
    for (uintptr_t page = 0; page < kWindowPages; ++page) {
      const Span* span = Owner(PageId(page));
      const bool small = span != nullptr && span->state == Span::State::kSmall &&
                         span->end().index() <= kWindowPages;
      ASSERT_EQ(table_[page], small ? uint8_t{span->size_class} : 0) << page;
    }
  }

  void Finish() {
    while (!spans_.empty()) Remove(0);
    CheckAll();
  }

 private:
  static constexpr uintptr_t kWindowPages = 4096;
  static constexpr uintptr_t kPages = uintptr_t{1} << (kAddressBits - kPageShift);

  // Around the end of the window, the borders of nodes, and the end of the address space.
  static uintptr_t FirstPage(uint64_t pick) {
    constexpr uintptr_t kBases[] = {1,
                                    kWindowPages - 100,
                                    (uintptr_t{1} << 12) * 7 - 100,
                                    (uintptr_t{1} << 24) - 100,
                                    (uintptr_t{1} << 25) - 100,
                                    kPages - 400};
    return kBases[pick % std::size(kBases)] + pick / 8 % 300;
  }

  Span* Owner(PageId page) const {
    const auto after = spans_.upper_bound(page);
    if (after == spans_.begin()) return nullptr;
    Span* span = std::prev(after)->second;
    return span->Contains(page) ? span : nullptr;
  }

  void Add(uint64_t pick, uint64_t b, Span::State state) {
    const PageId first(FirstPage(pick));
    const Length length(1 + b % 40);
    for (PageId page = first; page < first + length; ++page) {
      if (Owner(page) != nullptr) return;
    }
    ASSERT_TRUE(map_->Ensure(first, length));
    Span& span = records_.emplace_back();
    span.first = first;
    span.length = length;
    span.state = state;
    span.size_class = state == Span::State::kSmall ? static_cast<uint8_t>(1 + b / 64 % 100) : 0;
    if (state == Span::State::kSmall) {
      map_->RegisterSmall(&span);
    } else {
      map_->SetEnds(&span);
    }
    spans_[first] = &span;
  }

  void Remove(uint64_t pick) {
    if (spans_.empty()) return;
    const auto removed = std::next(spans_.begin(), static_cast<long>(pick % spans_.size()));
    Span* span = removed->second;
    if (span->state == Span::State::kSmall) map_->UnregisterSmall(span);
    span->state = Span::State::kFree;
    spans_.erase(removed);
  }

  // An address, not an offset of one: page 0 begins at null.
  static const void* InPage(PageId page) {
    return reinterpret_cast<const void*>(page.address() + 5);
  }

  void LookUp(PageId page) {
    const Span* owner = Owner(page);
    CheckEntry(page, owner);
    const Span* found = map_->FindInUse(InPage(page));
    // Of a large span only its ends are entered; an older entry may stand between them.
    const bool entered = owner == nullptr || owner->state == Span::State::kSmall ||
                         page == owner->first || page == owner->end() - Length(1);
    if (entered) {
      ASSERT_EQ(found, owner) << page.index();
    } else {
      ASSERT_TRUE(found == nullptr || found == owner) << page.index();
    }
  }

  // Checks the entry of `page`, which `owner` has. No stale entry has a class.
  void CheckEntry(PageId page, const Span* owner) {
    const bool small = owner != nullptr && owner->state == Span::State::kSmall;
    const PageMap::Entry entry = map_->EntryOf(page);
    ASSERT_EQ(entry.size_class(), small ? uint8_t{owner->size_class} : 0) << page.index();
    if (!small) return;
    ASSERT_EQ(entry.span(), owner) << page.index();
    ASSERT_EQ(entry.OffsetOf(InPage(page)), (page - owner->first.value()).bytes() + 5);
  }

  FakeMetadata metadata_;
  MetadataArena arena_{FakeMetadata::Source};
  std::unique_ptr<PageMap> map_ = std::make_unique<PageMap>(arena_);
  std::vector<uint8_t> table_ = std::vector<uint8_t>(kWindowPages);
  std::deque<Span> records_;  // never reused, so that stale entries show
  std::map<PageId, Span*> spans_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_PAGE_MAP_MACHINE_H_
