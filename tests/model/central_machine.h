// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The central free list beside a model of it: sets of objects. See replay.h.

#ifndef TCMALLOC_TESTS_MODEL_CENTRAL_MACHINE_H_
#define TCMALLOC_TESTS_MODEL_CENTRAL_MACHINE_H_

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include "model/replay.h"
#include "unit/central/test_central.h"

namespace tcmalloc::testing {

class CentralMachine {
 public:
  enum Op : unsigned { kFetch, kInsert, kInsertSpan, kRefuse, kFetchLine };
  static constexpr const char* kNames[] = {"kFetch", "kInsert", "kInsertSpan", "kRefuse",
                                           "kFetchLine"};

  explicit CentralMachine(size_t size) : central_(SizeClassFor(size)) {
    central_.space.spans.fail = [this] { return refusals_ > 0 && refusals_-- > 0; };
  }

  void Do(const Action& action) {
    switch (action.op) {
      case kFetch:
        return Fetch(1 + action.a % (2 * uint64_t{central_.info().batch}));
      case kInsert:
        return Insert(1 + action.a % (2 * uint64_t{central_.info().batch}), action.b);
      case kInsertSpan:
        return InsertSpan(action.a);
      case kRefuse:
        refusals_ = action.a % 4;
        return;
      case kFetchLine:
        return FetchLine();
    }
  }

  void CheckAll() {
    central_->CheckInvariants();
    const CentralStats stats = central_->stats();
    ASSERT_EQ(stats.allocated_objects, objects_.size());
    ASSERT_EQ(stats.spans, spans_.size());
    ASSERT_EQ(stats.spans, central_.space.spans.spans_in_use());
    ASSERT_EQ(stats.span_bytes, spans_.size() * central_.info().span_bytes());
    ASSERT_EQ(stats.allocated_objects + stats.free_objects + stats.uncarved_objects,
              spans_.size() * central_.info().objects);
    for (const auto& [span, count] : spans_) {
      ASSERT_EQ(span->allocated, count);
      ASSERT_TRUE(span->state == Span::State::kSmall);
    }
    for (void* object : objects_) ASSERT_EQ(*static_cast<void**>(object), object);
  }

  void Finish() {
    while (!objects_.empty()) Insert(objects_.size(), 0);
    CheckAll();
    ASSERT_EQ(central_.space.spans.spans_in_use(), 0u);
  }

 private:
  void Fetch(uint64_t wanted) {
    const bool had_some = std::any_of(spans_.begin(), spans_.end(), [&](const auto& span) {
      return span.second < central_.info().objects;
    });
    const std::vector<void*> objects = central_.Fetch(static_cast<uint32_t>(wanted));
    ASSERT_LE(objects.size(), std::max<uint64_t>(wanted, 64 / sizeof(void*)));
    if (objects.empty()) {
      ASSERT_FALSE(had_some) << "there were objects";
      return;
    }
    TakeOver(objects);
  }

  void FetchLine() {
    const size_t uncarved = central_->stats().uncarved_objects;
    const std::vector<void*> objects = central_.FetchLine();
    ASSERT_LE(objects.size(), 64 / sizeof(void*));
    ASSERT_EQ(central_->stats().uncarved_objects, uncarved - objects.size());
    TakeOver(objects);
  }

  void TakeOver(const std::vector<void*>& objects) {
    for (void* object : objects) {
      Span* span = central_.SpanOf(object);
      ASSERT_NE(span, nullptr);
      ASSERT_TRUE(IsObjectStart(static_cast<size_t>(static_cast<char*>(object) - span->start()),
                                central_.size_class));
      ASSERT_EQ(std::count(objects.begin(), objects.end(), object), 1);
      ++spans_[span];
      ASSERT_LE(spans_[span], central_.info().objects);
      // Everything in use holds its own address, so what is handed out twice shows.
      std::fill_n(static_cast<void**>(object), central_.info().size / sizeof(void*), object);
      objects_.push_back(object);
    }
  }

  void Insert(uint64_t count, uint64_t pick) {
    std::vector<void*> objects;
    for (; count > 0 && !objects_.empty(); --count) {
      std::swap(objects_[pick % objects_.size()], objects_.back());
      objects.push_back(objects_.back());
      objects_.pop_back();
    }
    Insert(objects);
  }

  // All objects of one span.
  void InsertSpan(uint64_t pick) {
    if (objects_.empty()) return;
    const Span* span = central_.SpanOf(objects_[pick % objects_.size()]);
    const auto others = std::partition(objects_.begin(), objects_.end(), [&](void* object) {
      return central_.SpanOf(object) != span;
    });
    const std::vector<void*> objects(others, objects_.end());
    objects_.erase(others, objects_.end());
    Insert(objects);
  }

  void Insert(const std::vector<void*>& objects) {
    for (void* object : objects) {
      Span* span = central_.SpanOf(object);
      if (--spans_[span] == 0) spans_.erase(span);
    }
    if (!objects.empty()) central_.Insert(objects);
  }

  TestCentral central_;
  uint64_t refusals_ = 0;
  std::vector<void*> objects_;     // in use
  std::map<Span*, size_t> spans_;  // objects in use of each span
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_MODEL_CENTRAL_MACHINE_H_
