// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Several threads at once, for the thread sanitizer and for the invariants.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <random>
#include <thread>
#include <vector>

#include "central/central_free_list.h"
#include "test_central.h"

namespace tcmalloc::testing {
namespace {

using Objects = std::vector<void*>;

constexpr int kThreads = 4;
constexpr int kSteps = 3000;

// Objects that any thread may take, each filled with its own address.
class SharedObjects {
 public:
  explicit SharedObjects(size_t object_bytes) : words_(object_bytes / sizeof(void*)) {}

  void Put(const Objects& objects) {
    for (void* object : objects) std::fill_n(static_cast<void**>(object), words_, object);
    std::lock_guard<std::mutex> guard(mutex_);
    objects_.insert(objects_.end(), objects.begin(), objects.end());
  }

  Objects Take(size_t most, uint64_t random) {
    std::lock_guard<std::mutex> guard(mutex_);
    Objects taken;
    while (taken.size() < most && !objects_.empty()) {
      std::swap(objects_[random % objects_.size()], objects_.back());
      void* object = objects_.back();
      objects_.pop_back();
      EXPECT_EQ(
          std::count(static_cast<void**>(object), static_cast<void**>(object) + words_, object),
          static_cast<long>(words_));
      taken.push_back(object);
    }
    return taken;
  }

 private:
  const size_t words_;
  std::mutex mutex_;
  Objects objects_;
};

void Churn(TestCentral* central, SharedObjects* objects, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (int step = 0; step < kSteps; ++step) {
    const size_t count = 1 + random() % central->info().batch;
    // Drifts up and down, so that spans fill and drain.
    const uint64_t grow = step / 300 % 2 == 0 ? 6 : 3;
    if (random() % 10 < grow) {
      objects->Put(central->Fetch(static_cast<uint32_t>(count)));
    } else {
      central->Insert(objects->Take(count, random()));
    }
    if (random() % 100 == 0) central->list.CheckInvariants();
  }
}

class CentralFreeListThreadsTest : public ::testing::TestWithParam<uint32_t> {};

TEST_P(CentralFreeListThreadsTest, Churn) {
  TestCentral central(SizeClassFor(GetParam()));
  SharedObjects objects(central.info().size);
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back(Churn, &central, &objects, static_cast<uint64_t>(i) + 1);
  }
  for (std::thread& thread : threads) thread.join();
  central->CheckInvariants();
  central.Insert(objects.Take(SIZE_MAX, 0));
  // Two threads in need of a span may both get one, of which one stays unused.
  const CentralStats stats = central->stats();
  EXPECT_EQ(stats.allocated_objects, 0u);
  EXPECT_EQ(stats.free_objects, 0u);
  EXPECT_EQ(stats.uncarved_objects, stats.spans * central.info().objects);
}

INSTANTIATE_TEST_SUITE_P(Sizes, CentralFreeListThreadsTest, ::testing::Values(8, 128, 4096, 65536));

}  // namespace
}  // namespace tcmalloc::testing
