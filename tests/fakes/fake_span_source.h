// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A page heap for tests that want to know which spans are out and to refuse more.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_SPAN_SOURCE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_SPAN_SOURCE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include "fakes/fake_system_memory.h"
#include "fakes/filled.h"
#include "page_heap/span_source.h"
#include "pages/page_map.h"

namespace tcmalloc::testing {

// Hands out fresh spans upwards through one reservation and first those that came back, the last
// one first. Memory that came back is filled with a pattern until it goes out again, and a test
// fails if anybody wrote to it meanwhile. Thread safe, except that settings are made while nobody
// else calls.
class FakeSpanSource {
 public:
  FakeSpanSource(PageMap& map, size_t reserved_bytes) : map_(map), memory_(reserved_bytes) {}

  // Settings.
  std::function<bool()> fail;   // called for each New
  bool fresh_is_zeroed = true;  // what New says of fresh memory, which is zero in any case

  Span* New(Length n) {
    if (fail && fail()) return nullptr;
    std::lock_guard<std::mutex> guard(mutex_);
    std::vector<Span*>& returned = returned_[n];
    Span* span = nullptr;
    if (returned.empty()) {
      span = NewFresh(n);
      if (span == nullptr) return nullptr;
    } else {
      span = returned.back();
      returned.pop_back();
      ExpectUntouched(span);
    }
    span->state = Span::State::kLarge;
    map_.SetEnds(span);
    ++spans_in_use_;
    return span;
  }

  Span* NewAligned(Length n, Length alignment) { return alignment == Length(1) ? New(n) : nullptr; }

  void Delete(Span* span) {
    std::lock_guard<std::mutex> guard(mutex_);
    EXPECT_TRUE(span->in_use());
    EXPECT_FALSE(span->linked());
    if (span->end().address() <= map_.window_limit()) {
      for (PageId page = span->first; page < span->end(); ++page) {
        EXPECT_EQ(map_.window()[page.index()], 0) << "the span is still registered";
      }
    }
    span->state = Span::State::kFree;
    span->zeroed = false;
    std::memset(span->start(), kPattern, span->bytes());
    returned_[span->length].push_back(span);
    --spans_in_use_;
  }

  char* begin() const { return memory_.begin(); }
  size_t spans_in_use() const { return spans_in_use_; }
  // Spans of fresh memory ever handed out.
  size_t fresh_spans() const { return fresh_spans_; }

 private:
  static constexpr unsigned char kPattern = 0xdb;

  Span* NewFresh(Length n) {
    void* start = memory_.Allocate(n.bytes(), kPageSize).start;
    if (start == nullptr || !map_.Ensure(PageId::Containing(start), n)) return nullptr;
    Span& span = records_.emplace_back();
    span.first = PageId::Containing(start);
    span.length = n;
    span.zeroed = fresh_is_zeroed;
    ++fresh_spans_;
    return &span;
  }

  static void ExpectUntouched(const Span* span) {
    EXPECT_TRUE(IsFilled(span->start(), span->bytes(), kPattern))
        << "a span that nobody owned was written to";
  }

  PageMap& map_;
  FakeSystemMemory memory_;
  std::mutex mutex_;
  std::deque<Span> records_;
  std::map<Length, std::vector<Span*>> returned_;
  std::atomic<size_t> spans_in_use_{0};
  std::atomic<size_t> fresh_spans_{0};
};
static_assert(SpanSource<FakeSpanSource>);

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_SPAN_SOURCE_H_
