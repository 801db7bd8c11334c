// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "cache/per_thread/page_bins.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "fakes/object_space.h"
#include "size_class/size_classes.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr uint32_t kBinnedSize = 64;
constexpr uint32_t kBinnedPage = 4096;

// Bins of objects of 64 bytes, in memory that is no heap.
class PageBinsTest : public ::testing::Test {
 protected:
  static constexpr size_t kPages = 2 * PageBins::kBins + 3;

  PageBinsTest() : memory_(kPages * kBinnedPage + kBinnedPage) {
    const auto begin = reinterpret_cast<uintptr_t>(memory_.data());
    // The first page has bin 0.
    pages_ = reinterpret_cast<char*>((begin + kBinnedPage - 1) / kBinnedPage * kBinnedPage);
    bins_ = PageBins::New(kBinnedSize, arrays_);
  }
  ~PageBinsTest() override {
    while (bins_->Take().count > 0) {
    }
    PageBins::Delete(bins_, arrays_);
  }

  void* At(size_t page, size_t index) { return pages_ + page * kBinnedPage + index * kBinnedSize; }
  Objects Put(const Objects& objects, uintptr_t misplaced = kBinnedSize - 1) {
    const Chain strays =
        bins_->Put(space_.MakeChain(objects), space_.codec, misplaced, [this](void* object) {
          checked_.push_back(object);
          return space_.codec.Next(object);
        });
    return space_.Objects(strays);
  }
  Objects Take() { return space_.Objects(bins_->Take()); }

  ObjectSpace space_{Window::kAll};
  ChainArrays arrays_{space_.arena};
  std::vector<char> memory_;
  char* pages_;
  PageBins* bins_;
  Objects checked_;
};

TEST(PageBinsRegionTest, IsAPageOrFewObjectsAndNotTooMany) {
  EXPECT_EQ(PageBins::RegionBytes(8), 1024u);
  EXPECT_EQ(PageBins::RegionBytes(16), 2048u);
  for (uint32_t size : {32, 48, 64, 256})
    EXPECT_EQ(PageBins::RegionBytes(size), kBinnedPage) << size;
  EXPECT_EQ(PageBins::RegionBytes(512), 8192u);
  EXPECT_EQ(PageBins::RegionBytes(528), 16384u);
}

TEST(PageBinsRegionTest, HasNoMoreObjectsThanTwoBatches) {
  for (const SizeClassInfo& info : kSizeClasses) {
    if (info.size == 0 || info.size > kScatterMostSize) continue;
    EXPECT_LE(PageBins::MostInRegion(info.size), 2u * info.batch) << info.size;
    EXPECT_LE(PageBins::MostInRegion(info.size), 128u) << info.size;
  }
}

TEST_F(PageBinsTest, StartsEmpty) {
  EXPECT_EQ(bins_->objects(), 0u);
  EXPECT_TRUE(Take().empty());
  EXPECT_EQ(bins_->ChainOf(At(1, 1)).count, 0u);
}

TEST_F(PageBinsTest, ObjectsComeBackPageByPage) {
  Objects objects;
  for (size_t i = 0; i < 64 * 20; ++i) objects.push_back(At(i / 64 + 1, i % 64));
  std::shuffle(objects.begin(), objects.end(), std::mt19937_64(1));
  EXPECT_TRUE(Put(objects).empty());
  EXPECT_EQ(bins_->objects(), objects.size());

  Objects taken;
  for (int page = 0; page < 20; ++page) {
    Objects of_page = Take();
    EXPECT_EQ(of_page.size(), 64u);
    const auto number = [](void* object) {
      return reinterpret_cast<uintptr_t>(object) / kBinnedPage;
    };
    for (void* object : of_page) EXPECT_EQ(number(object), number(of_page.front()));
    taken.insert(taken.end(), of_page.begin(), of_page.end());
  }
  EXPECT_EQ(bins_->objects(), 0u);
  EXPECT_TRUE(Take().empty());
  std::sort(taken.begin(), taken.end());
  std::sort(objects.begin(), objects.end());
  EXPECT_EQ(taken, objects);
}

TEST_F(PageBinsTest, TheObjectThatCameLastIsTheFirst) {
  Put({At(1, 5), At(2, 0), At(1, 9)});
  Put({At(1, 7)});
  const auto bin_of = [this](const void* object) { return space_.Objects(bins_->ChainOf(object)); };
  EXPECT_EQ(bin_of(At(1, 0)), (Objects{At(1, 7), At(1, 9), At(1, 5)}));
  EXPECT_EQ(bin_of(At(2, 0)), (Objects{At(2, 0)}));
}

TEST_F(PageBinsTest, GoesOnBehindThePageThatWasTakenLast) {
  const size_t first =
      PageBins::kBins - reinterpret_cast<uintptr_t>(pages_) / kBinnedPage % PageBins::kBins;
  Put({At(first + 10, 0), At(first + 20, 0), At(first + 500, 0)});
  EXPECT_EQ(Take(), (Objects{At(first + 10, 0)}));
  EXPECT_EQ(Take(), (Objects{At(first + 20, 0)}));
  Put({At(first + 15, 0)});
  EXPECT_EQ(Take(), (Objects{At(first + 500, 0)}));
  EXPECT_EQ(Take(), (Objects{At(first + 15, 0)}));
}

TEST_F(PageBinsTest, ABinIsOfTheFirstPageUntilItIsTaken) {
  const size_t other = 1 + PageBins::kBins;
  EXPECT_EQ(Put({At(1, 0), At(other, 1), At(other, 2), At(1, 3)}),
            (Objects{At(other, 2), At(other, 1)}));
  EXPECT_EQ(bins_->objects(), 2u);
  EXPECT_EQ(Take(), (Objects{At(1, 3), At(1, 0)}));
  EXPECT_TRUE(Put({At(other, 1)}).empty());
  EXPECT_EQ(Put({At(1, 0)}), (Objects{At(1, 0)}));
  EXPECT_EQ(Take(), (Objects{At(other, 1)}));
}

// As after many second frees that nobody noticed.
TEST_F(PageBinsTest, ABinHasABoundedNumberOfObjects) {
  for (int i = 0; i < UINT8_MAX; ++i) ASSERT_TRUE(Put({At(1, 0)}).empty());
  EXPECT_EQ(Put({At(1, 0)}), (Objects{At(1, 0)}));
  EXPECT_EQ(bins_->Take().count, uint32_t{UINT8_MAX});
  EXPECT_EQ(bins_->objects(), 0u);
}

TEST_F(PageBinsTest, AsksAboutObjectsThatAreNotAligned) {
  char* const inside = static_cast<char*>(At(1, 1)) + 8;
  Put({At(1, 0), inside, At(1, 2)}, kBinnedSize - 1);
  EXPECT_EQ(std::count(checked_.begin(), checked_.end(), inside), 1);
}

TEST_F(PageBinsTest, VisitsEachBin) {
  Put({At(1, 0), At(2, 0), At(1, 1), At(77, 0)});
  uint32_t objects = 0;
  int bins = 0;
  bins_->ForEach([&](Chain chain) {
    objects += chain.count;
    ++bins;
  });
  EXPECT_EQ(objects, 4u);
  EXPECT_EQ(bins, 3);
}

TEST(PageBinsMemoryTest, IsUsedAgain) {
  ObjectSpace space(Window::kAll);
  ChainArrays arrays(space.arena);
  PageBins* first = PageBins::New(kBinnedSize, arrays);
  PageBins::Delete(first, arrays);
  PageBins* second = PageBins::New(kBinnedSize, arrays);
  EXPECT_EQ(second, first);
  EXPECT_EQ(second->Take().count, 0u);
  PageBins::Delete(second, arrays);
}

}  // namespace
}  // namespace tcmalloc::testing
