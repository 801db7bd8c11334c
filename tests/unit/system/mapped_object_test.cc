// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/mapped_object.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <thread>
#include <vector>

#include "system/system_calls.h"

namespace tcmalloc {
namespace {

struct Table {
  int entries[100'000];
};

// Refuses all memory for its scope.
class NoMemory {
 public:
  NoMemory() {
    system_calls.mmap = [](void*, size_t, int, int, int, off_t) {
      errno = ENOMEM;
      return MAP_FAILED;
    };
  }
  ~NoMemory() { system_calls = saved_; }
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;

 private:
  SystemCalls saved_ = system_calls;
};

TEST(MappedObjectTest, IsMappedWhenItIsWanted) {
  MappedObject<Table> object;
  EXPECT_EQ(object.get(), nullptr);
  Table* table = object.GetOrMap();
  ASSERT_NE(table, nullptr);
  EXPECT_TRUE(std::ranges::all_of(table->entries, [](int entry) { return entry == 0; }));
  EXPECT_EQ(object.get(), table);
  EXPECT_EQ(object.GetOrMap(), table);
}

TEST(MappedObjectTest, IsAskedForAgainWhereThereWasNoMemory) {
  MappedObject<Table> object;
  {
    const NoMemory none;
    errno = 0;
    EXPECT_EQ(object.GetOrMap(), nullptr);
    EXPECT_EQ(errno, 0);
    EXPECT_EQ(object.get(), nullptr);
  }
  EXPECT_NE(object.GetOrMap(), nullptr);
}

TEST(MappedObjectTest, ThreadsGetTheSame) {
  constexpr int kRounds = 200;
  for (int round = 0; round < kRounds; ++round) {
    MappedObject<Table> object;
    Table* seen[4] = {};
    std::vector<std::thread> threads;
    for (Table*& table : seen) threads.emplace_back([&] { table = object.GetOrMap(); });
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(std::set(std::begin(seen), std::end(seen)), std::set{object.get()});
  }
}

}  // namespace
}  // namespace tcmalloc
