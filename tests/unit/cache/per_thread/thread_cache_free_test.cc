// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Addresses that the fast path of free refuses, and that nothing has changed then.

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <random>
#include <vector>

#include "cache/per_thread/thread_cache.h"
#include "test_cache.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

void* AddressOf(uintptr_t address) { return reinterpret_cast<void*>(address); }

class ThreadCacheFreeTest : public ::testing::TestWithParam<Window> {
 protected:
  ThreadCacheFreeTest() : objects_(cache_.AllocateMany(kClass, 100)) {
    for (size_t i = 50; i < 100; ++i) cache_.Free(objects_[i]);
  }

  void ExpectRefused(void* address) {
    const size_t before = cache_->CountObjects(kClass);
    EXPECT_FALSE(cache_.TryFree(address)) << address;
    EXPECT_EQ(cache_->CountObjects(kClass), before) << address;
    cache_->CheckInvariants();
  }

  TestSources sources_{GetParam()};
  TestCache cache_{sources_};
  const Objects objects_;
};

TEST_P(ThreadCacheFreeTest, NullAndSmallIntegers) {
  for (uintptr_t address = 0; address < 64; ++address) ExpectRefused(AddressOf(address));
}

TEST_P(ThreadCacheFreeTest, MisalignedPointers) {
  for (uintptr_t offset = 1; offset < 8; ++offset) {
    ExpectRefused(static_cast<char*>(objects_[0]) + offset);
  }
}

TEST_P(ThreadCacheFreeTest, ForeignMemory) {
  alignas(16) static uint64_t global[4] = {};
  alignas(16) uint64_t local[4] = {};
  const auto dynamic = std::make_unique<uint64_t[]>(4);
  ExpectRefused(global);
  ExpectRefused(local);
  ExpectRefused(dynamic.get());
}

TEST_P(ThreadCacheFreeTest, AddressesBeyondTheWindow) {
  for (uintptr_t address : {FakeWindow::kEndOfUserSpace, uintptr_t{1} << 63, UINTPTR_MAX - 7}) {
    ExpectRefused(AddressOf(address));
  }
  std::mt19937_64 random(1);
  for (int i = 0; i < 1000; ++i) {
    ExpectRefused(AddressOf(FakeWindow::kEndOfUserSpace | random()));
  }
}

TEST_P(ThreadCacheFreeTest, LargeSpans) {
  const Span* span = sources_.space.spans.New(Length(2));
  ExpectRefused(span->start());
}

TEST_P(ThreadCacheFreeTest, FreedSpans) {
  Span* span = sources_.space.spans.New(Length(2));
  span->state = Span::State::kSmall;
  span->size_class = kClass;
  sources_.space.map->RegisterSmall(span);
  sources_.space.map->UnregisterSmall(span);
  sources_.space.spans.Delete(span);
  ExpectRefused(span->start());
}

TEST_P(ThreadCacheFreeTest, ObjectsThatAreFreeAlready) {
  for (size_t i = 50; i < 100; ++i) {
    if (cache_->Holds(objects_[i], kClass, true)) ExpectRefused(objects_[i]);
  }
}

TEST_P(ThreadCacheFreeTest, ObjectsOfAClassThatWasNeverUsed) {
  const uint8_t other = SizeClassFor(4096);
  const std::vector<void*> objects =
      sources_.space.Objects(sources_.sources.Ensure(other).Fetch(1));
  LinkWord(objects[0]) = 0;
  ExpectRefused(objects[0]);
  cache_.Free(objects[0]);
  EXPECT_EQ(cache_->CountObjects(other), 1u);
}

// The fast path takes them in; their low bits tell when their list is walked or given away.
TEST_P(ThreadCacheFreeTest, AddressesInsideOfObjectsAreNoticedLater) {
  for (const int offset : {8, 16, 32}) {
    char* interior = static_cast<char*>(objects_[0]) + offset;
    EXPECT_DEATH(
        {
          cache_.Free(interior);
          cache_->Close();
          cache_->Flush();
        },
        "corrupted free list");
  }
}

INSTANTIATE_TEST_SUITE_P(Windows, ThreadCacheFreeTest,
                         ::testing::Values(Window::kAll, Window::kFirstBytes, Window::kNone));

}  // namespace
}  // namespace tcmalloc::testing
