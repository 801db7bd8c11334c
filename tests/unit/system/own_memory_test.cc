// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/own_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cerrno>

#include "system/auxv.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

TEST(OwnMemoryTest, WhatIsUsedAsAWholeCountsAsPages) {
  const size_t page = KernelPageSize();
  const size_t before = own_bytes.get();
  void* memory = MapZeroed(3 * page + 1);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(own_bytes.get(), before + 4 * page);
  UnmapZeroed(memory, 3 * page + 1);
  EXPECT_EQ(own_bytes.get(), before);
}

TEST(OwnMemoryTest, SparseMemoryCountsAsItsOwnerSays) {
  constexpr size_t kBytes = size_t{1} << 20;
  const size_t before = own_bytes.get();
  void* memory = MapSparse(kBytes);
  ASSERT_NE(memory, nullptr);
  EXPECT_EQ(own_bytes.get(), before);
  own_bytes.Add(100);
  EXPECT_EQ(own_bytes.get(), before + 100);
  own_bytes.Remove(100);
  UnmapSparse(memory, kBytes);
  EXPECT_EQ(own_bytes.get(), before);
}

TEST(OwnMemoryTest, WhatCannotBeMappedDoesNotCount) {
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void*, size_t, int, int, int, off_t) {
    errno = ENOMEM;
    return MAP_FAILED;
  };
  const size_t before = own_bytes.get();
  errno = 0;
  EXPECT_EQ(MapZeroed(1000), nullptr);
  EXPECT_EQ(MapSparse(1000), nullptr);
  EXPECT_EQ(errno, 0);
  EXPECT_EQ(own_bytes.get(), before);
  system_calls = saved;
}

TEST(OwnMemoryTest, EachPageIsUsedOnce) {
  const size_t page = KernelPageSize();
  UsedPages<size_t{16} << 20> pages;
  EXPECT_EQ(pages.Use(0, 0), 0U);
  EXPECT_EQ(pages.Use(10, 11), page);
  EXPECT_EQ(pages.Use(0, page), 0U);
  EXPECT_EQ(pages.Use(page - 1, page + 1), page);
  EXPECT_EQ(pages.Use(0, 100 * page), 98 * page);
  EXPECT_EQ(pages.Use((size_t{16} << 20) - 1, size_t{16} << 20), page);
  pages.Clear();
  EXPECT_EQ(pages.Use(0, 100 * page), 100 * page);
}

}  // namespace
}  // namespace tcmalloc
