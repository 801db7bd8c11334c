// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/page_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cache/scatter.h"
#include "fakes/object_space.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr uint32_t kBinnedSize = 64;
constexpr uint8_t kBinnedClass = SizeClassFor(kBinnedSize);
constexpr uint32_t kBinnedPage = 4096;

// Spans side by side in memory that is no heap.
struct FakeOwner {
  ObjectReference CheckedNext(void* object) const {
    checked->push_back(object);
    return codec->end;
  }
  bool IsObject(const void* object) const {
    const auto offset = static_cast<size_t>(static_cast<const char*>(object) - begin);
    return IsObjectStart(offset % kSizeClasses[c].span_bytes(), c);
  }
  [[noreturn]] void CrashOnTwice(const void*) const {
    std::fputs("freed twice\n", stderr);
    std::abort();
  }

  uint8_t c;
  const char* begin;
  const LinkCodec* codec;
  Objects* checked;
};

// Bins of one class, and memory that begins with a page of bin 0.
class PageBinsTest : public ::testing::Test {
 protected:
  static constexpr size_t kPages = 2 * PageBins::kBins + 3;

  explicit PageBinsTest(uint8_t c = kBinnedClass)
      : class_(c), memory_(kPages * kBinnedPage + kAlignment) {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    pages_ = reinterpret_cast<char*>((begin + kAlignment - 1) / kAlignment * kAlignment);
    bins_ = PageBins::New(class_, arrays_);
  }
  ~PageBinsTest() override {
    while (!Take().empty()) {
    }
    PageBins::Delete(bins_, arrays_);
  }

  void* At(size_t page, size_t index) { return pages_ + page * kBinnedPage + index * kBinnedSize; }
  Objects Put(const Objects& objects) { return PutChain(space_.MakeChain(objects)); }
  Objects PutChain(Chain chain) {
    const FakeOwner owner{class_, pages_, &space_.codec, &checked_};
    return space_.Objects(bins_->Put(chain, space_.codec, owner));
  }
  Objects Take() {
    return space_.Objects(
        bins_->Take(space_.codec, [this](void* object) { overwritten_.push_back(object); }));
  }

  ObjectSpace space_{Window::kAll};
  ChainArrays arrays_{space_.arena};
  uint8_t class_;
  char* pages_;
  PageBins* bins_;
  Objects checked_;
  Objects overwritten_;

 private:
  // So that spans and regions of all classes begin together.
  static constexpr uintptr_t kAlignment = uintptr_t{PageBins::kBins} * kPageSize;

  std::vector<char> memory_;
};

TEST(PageBinsRegionTest, IsAPageOrFewObjectsAndNotTooMany) {
  EXPECT_EQ(PageBins::RegionBytes(8), 1024u);
  EXPECT_EQ(PageBins::RegionBytes(16), 2048u);
  for (uint32_t size : {32, 48, 64, 256})
    EXPECT_EQ(PageBins::RegionBytes(size), kBinnedPage) << size;
  EXPECT_EQ(PageBins::RegionBytes(512), 8192u);
  EXPECT_EQ(PageBins::RegionBytes(2048), kPageSize) << "no more than a span may have";
}

TEST(PageBinsRegionTest, ATakeHasNoMoreObjectsThanTwoBatches) {
  for (const SizeClassInfo& info : kSizeClasses) {
    if (info.size == 0 || info.size > kScatterMostSize) continue;
    const uint32_t most = (PageBins::RegionBytes(info.size) + info.size - 1) / info.size;
    EXPECT_LE(PageBins::kFewest - 1 + most, 2u * info.batch) << info.size;
    EXPECT_LE(most, PageBins::kMostInRegion) << info.size;
  }
}

TEST_F(PageBinsTest, StartsEmpty) {
  EXPECT_EQ(bins_->objects(), 0u);
  EXPECT_TRUE(Take().empty());
  EXPECT_FALSE(bins_->Has(At(1, 1)));
}

TEST_F(PageBinsTest, ObjectsComeBackPageByPageInAscendingOrder) {
  Objects objects;
  for (size_t i = 0; i < 64 * 20; ++i) objects.push_back(At(i / 64 + 1, i % 64));
  Objects shuffled = objects;
  std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(1));
  EXPECT_TRUE(Put(shuffled).empty());
  EXPECT_EQ(bins_->objects(), objects.size());

  for (auto page = objects.begin(); page != objects.end(); page += 64) {
    EXPECT_EQ(Take(), Objects(page, page + 64));
  }
  EXPECT_EQ(bins_->objects(), 0u);
  EXPECT_TRUE(Take().empty());
}

TEST_F(PageBinsTest, ThoseOfSeveralPagesComeTogetherWhereTheyAreFew) {
  Objects objects;
  for (size_t i = 0; i < 40; ++i) objects.push_back(At(i + 1, i));
  EXPECT_TRUE(Put({objects.rbegin(), objects.rend()}).empty());
  EXPECT_EQ(Take(), Objects(objects.begin(), objects.begin() + 16));
  EXPECT_EQ(Take(), Objects(objects.begin() + 16, objects.begin() + 32));
  EXPECT_EQ(Take(), Objects(objects.begin() + 32, objects.end()));
}

TEST_F(PageBinsTest, GoesOnBehindThePageThatWasTakenLast) {
  const auto page = [this](size_t number) {
    Objects objects;
    for (size_t i = 0; i < PageBins::kFewest; ++i) objects.push_back(At(number, i));
    return objects;
  };
  for (size_t number : {10, 20, 500}) Put(page(number));
  EXPECT_EQ(Take(), page(10));
  EXPECT_EQ(Take(), page(20));
  Put(page(15));
  EXPECT_EQ(Take(), page(500));
  EXPECT_EQ(Take(), page(15));
}

TEST_F(PageBinsTest, ABinIsOfTheFirstPageUntilItIsTaken) {
  const size_t other = 1 + PageBins::kBins;
  EXPECT_EQ(Put({At(1, 0), At(other, 1), At(other, 2), At(1, 3)}),
            (Objects{At(other, 2), At(other, 1)}));
  EXPECT_EQ(bins_->objects(), 2u);
  EXPECT_FALSE(bins_->Has(At(other, 0)));
  EXPECT_EQ(Take(), (Objects{At(1, 0), At(1, 3)}));
  EXPECT_TRUE(Put({At(other, 1)}).empty());
  EXPECT_EQ(Put({At(1, 0)}), (Objects{At(1, 0)}));
  EXPECT_EQ(Take(), (Objects{At(other, 1)}));
}

TEST_F(PageBinsTest, AnObjectThatIsThereAlreadyEndsTheProcess) {
  Put({At(1, 0), At(1, 7)});
  EXPECT_DEATH(Put({At(1, 7)}), "freed twice");
}

TEST_F(PageBinsTest, WhatIsNoObjectComesBack) {
  char* const inside = static_cast<char*>(At(1, 1)) + 8;
  EXPECT_EQ(Put({inside, At(1, 2)}), (Objects{inside})) << "the bin has no region yet";
  EXPECT_EQ(Put({inside, At(1, 3)}), (Objects{inside}));
  EXPECT_EQ(Take(), (Objects{At(1, 2), At(1, 3)}));
}

TEST_F(PageBinsTest, AsksWhatFollowsWhereALinkWasOverwritten) {
  const Chain chain = space_.MakeChain({At(1, 0), At(1, 1), At(1, 2)});
  LinkWord(At(1, 1)) = 0x4141414141414141;
  EXPECT_TRUE(PutChain(chain).empty());
  EXPECT_EQ(checked_, (Objects{At(1, 1)}));
}

TEST_F(PageBinsTest, NoticesALinkThatWasOverwrittenMeanwhile) {
  Put({At(1, 0), At(1, 1), At(1, 2)});
  LinkWord(At(1, 1)) = 0x4141414141414141;
  EXPECT_EQ(Take().size(), 3u);
  EXPECT_EQ(overwritten_, (Objects{At(1, 1)}));
}

TEST_F(PageBinsTest, VisitsEachObject) {
  const Objects objects = {At(1, 0), At(1, 1), At(2, 0), At(77, 0)};
  Put(objects);
  Objects visited;
  bins_->ForEach([&](void* object) { visited.push_back(object); });
  EXPECT_EQ(visited, objects);
  for (const void* object : objects) EXPECT_TRUE(bins_->Has(object));
  EXPECT_FALSE(bins_->Has(At(1, 2)));
}

// Objects begin anywhere in a region where their size is no power of two.
class PageBinsOfClassTest : public PageBinsTest, public ::testing::WithParamInterface<uint8_t> {
 protected:
  PageBinsOfClassTest() : PageBinsTest(GetParam()) {}
};

TEST_P(PageBinsOfClassTest, EachObjectComesBackOnceInOrder) {
  const SizeClassInfo& info = kSizeClasses[class_];
  Objects objects;
  for (size_t span = 0; span < 3; ++span) {
    for (size_t i = 0; i < info.objects; ++i) {
      objects.push_back(pages_ + span * info.span_bytes() + i * info.size);
    }
  }
  for (const double share : {1.0, 0.4}) {
    Objects shuffled = objects;
    std::shuffle(shuffled.begin(), shuffled.end(), std::mt19937_64(3));
    shuffled.resize(static_cast<size_t>(static_cast<double>(objects.size()) * share));
    ASSERT_TRUE(Put(shuffled).empty());
    Objects taken;
    for (Objects some = Take(); !some.empty(); some = Take()) {
      taken.insert(taken.end(), some.begin(), some.end());
    }
    std::sort(shuffled.begin(), shuffled.end());
    EXPECT_EQ(taken, shuffled);
  }
}

std::vector<uint8_t> BinnedClasses() {
  std::vector<uint8_t> classes;
  for (uint8_t c = 1; kSizeClasses[c].size <= kScatterMostSize; ++c) classes.push_back(c);
  return classes;
}
std::string SizeName(const ::testing::TestParamInfo<uint8_t>& c) {
  return std::to_string(kSizeClasses[c.param].size);
}

INSTANTIATE_TEST_SUITE_P(Sizes, PageBinsOfClassTest, ::testing::ValuesIn(BinnedClasses()),
                         SizeName);

TEST(PageBinsMemoryTest, IsUsedAgain) {
  ObjectSpace space(Window::kAll);
  ChainArrays arrays(space.arena);
  PageBins* first = PageBins::New(kBinnedClass, arrays);
  PageBins::Delete(first, arrays);
  PageBins* second = PageBins::New(kBinnedClass, arrays);
  EXPECT_EQ(second, first);
  EXPECT_EQ(second->objects(), 0u);
  PageBins::Delete(second, arrays);
}

}  // namespace
}  // namespace tcmalloc::testing
