// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/memory_map.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "unit/leak_check/own_memory_map.h"

namespace tcmalloc {
namespace {

constexpr size_t kPage = 4096;

std::vector<Range> Readable(const MemoryMap& map, const Range& range) {
  std::vector<Range> parts;
  map.ForEachReadable(range, [&](const Range& part) { parts.push_back(part); });
  return parts;
}

size_t Bytes(const std::vector<Range>& parts) {
  size_t bytes = 0;
  for (const Range& part : parts) bytes += part.bytes();
  return bytes;
}

Range Map(size_t pages, int flags = MAP_PRIVATE | MAP_ANONYMOUS, int fd = -1) {
  void* memory = ::mmap(nullptr, pages * kPage, PROT_READ | PROT_WRITE, flags, fd, 0);
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  return {begin, begin + pages * kPage};
}

// Returns a descriptor of a file that has no name, or -1.
int FileOf(size_t pages) {
  char path[] = "/tmp/memory_map_test.XXXXXX";
  const int fd = ::mkstemp(path);
  if (fd < 0) return -1;
  ::unlink(path);
  if (::ftruncate(fd, static_cast<off_t>(pages * kPage)) == 0) return fd;
  ::close(fd);
  return -1;
}

TEST(MemoryMapTest, ReadsLines) {
  const auto stack = ParseMappedRange("7ffc1000-7ffc3000 rw-p 00000000 00:00 0      [stack]");
  ASSERT_TRUE(stack);
  EXPECT_EQ(stack->range.begin, 0x7ffc1000u);
  EXPECT_EQ(stack->range.end, 0x7ffc3000u);
  EXPECT_TRUE(stack->of_first_stack && stack->readable && stack->writable);
  EXPECT_FALSE(stack->of_file || stack->shared);
  const auto library = ParseMappedRange("1000-2000 r-xp 00000000 08:01 5   /lib/libm.so.6");
  ASSERT_TRUE(library);
  EXPECT_TRUE(library->of_file);
  EXPECT_FALSE(library->writable);
  EXPECT_FALSE(ParseMappedRange("nonsense"));
  EXPECT_FALSE(ParseMappedRange(""));
}

TEST(MemoryMapTest, LeavesOutPagesThatCannotBeRead) {
  const Range range = Map(8);
  ::mprotect(reinterpret_cast<void*>(range.begin + 2 * kPage), kPage, PROT_NONE);
  ::munmap(reinterpret_cast<void*>(range.begin + 5 * kPage), kPage);
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  const std::vector<Range> parts = Readable(map, range);
  EXPECT_EQ(Bytes(parts), 6 * kPage);
  for (const Range& part : parts) {
    EXPECT_FALSE(part.Contains(range.begin + 2 * kPage));
    EXPECT_FALSE(part.Contains(range.begin + 5 * kPage));
  }
  EXPECT_EQ(Bytes(Readable(map, {range.begin + 8, range.begin + 24})), 16u);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
}

TEST(MemoryMapTest, LeavesOutMemoryThatWasNeverTouched) {
  constexpr size_t kPages = 4096;
  const Range range = Map(kPages);
  ::madvise(reinterpret_cast<void*>(range.begin), range.bytes(), MADV_NOHUGEPAGE);
  for (const size_t page : {size_t{0}, size_t{1000}, size_t{1001}, kPages - 1}) {
    *reinterpret_cast<char*>(range.begin + page * kPage) = 1;
  }
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  const std::vector<Range> parts = Readable(map, range);
  if (::access("/proc/self/pagemap", R_OK) == 0) {
    EXPECT_EQ(Bytes(parts), 4 * kPage);
    ASSERT_EQ(parts.size(), 3u);
    EXPECT_EQ(parts[1].begin, range.begin + 1000 * kPage);
  }
  // Parts of pages at both ends.
  const Range inside = {range.begin + 1000 * kPage + 8, range.end - 8};
  const std::vector<Range> inner = Readable(map, inside);
  ASSERT_FALSE(inner.empty());
  EXPECT_EQ(inner.front().begin, inside.begin);
  EXPECT_EQ(inner.back().end, inside.end);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
}

TEST(MemoryMapTest, LeavesOutLittleMemoryThatWasNeverTouched) {
  if (::access("/proc/self/pagemap", R_OK) != 0) GTEST_SKIP();
  constexpr size_t kPages = 16;
  const Range range = Map(kPages);
  *reinterpret_cast<char*>(range.begin + 5 * kPage) = 1;
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  EXPECT_EQ(Bytes(Readable(map, range)), kPage);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
}

// They have what the file has.
TEST(MemoryMapTest, LeavesOutPrivatePagesOfAFileThatWereNeverTouched) {
  if (::access("/proc/self/pagemap", R_OK) != 0) GTEST_SKIP();
  const int fd = FileOf(3);
  ASSERT_GE(fd, 0);
  const Range range = Map(4, MAP_PRIVATE, fd);
  *reinterpret_cast<char*>(range.begin + kPage) = 1;
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  const std::vector<Range> parts = Readable(map, range);
  ASSERT_EQ(parts.size(), 1u);
  EXPECT_EQ(parts[0].begin, range.begin + kPage);
  EXPECT_EQ(parts[0].bytes(), kPage);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
  ::close(fd);
}

TEST(MemoryMapTest, LeavesOutSharedMemoryThatNobodyTouched) {
  struct sysinfo info = {};
  if (::sysinfo(&info) != 0 || info.freeswap != info.totalswap) GTEST_SKIP();
  constexpr size_t kPages = 4096;
  const int fd = static_cast<int>(::syscall(SYS_memfd_create, "shared", 0));
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::ftruncate(fd, static_cast<off_t>(kPages * kPage)), 0);
  const Range range = Map(kPages, MAP_SHARED, fd);
  for (const size_t page : {size_t{0}, size_t{1000}, size_t{1001}, kPages - 1}) {
    *reinterpret_cast<char*>(range.begin + page * kPage) = 1;
  }
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  // One page is looked at where the kernel's large pages would fit.
  const size_t bytes = Bytes(Readable(map, range));
  EXPECT_GE(bytes, 4 * kPage);
  EXPECT_LE(bytes, 5 * kPage);
  struct stat status = {};
  ASSERT_EQ(::fstat(fd, &status), 0);
  EXPECT_LE(static_cast<size_t>(status.st_blocks) * 512, 5 * kPage);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
  ::close(fd);
}

// No process has them in its table but the one that touched them.
TEST(MemoryMapTest, AChildFindsItsParentsSharedPages) {
  constexpr size_t kPages = 1024;
  const Range range = Map(kPages, MAP_SHARED | MAP_ANONYMOUS);
  const size_t touched[] = {3, 700, 701};
  for (const size_t page : touched) *reinterpret_cast<char*>(range.begin + page * kPage) = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    MemoryMap map;
    if (!ReadOwn(&map)) ::_exit(1);
    const std::vector<Range> parts = Readable(map, range);
    for (const size_t page : touched) {
      const auto has = [&](const Range& part) { return part.Contains(range.begin + page * kPage); };
      if (std::none_of(parts.begin(), parts.end(), has)) ::_exit(2);
    }
    ::_exit(0);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
}

TEST(MemoryMapTest, AChildFindsItsParentsLargePages) {
  constexpr size_t kLargePages = 3;
  constexpr size_t kLargePage = 512 * kPage;
  void* memory = ::mmap(nullptr, kLargePages * kLargePage, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS | MAP_HUGETLB, -1, 0);
  if (memory == MAP_FAILED) GTEST_SKIP() << "the system has no large pages set aside";
  const auto begin = reinterpret_cast<uintptr_t>(memory);
  const Range range = {begin, begin + kLargePages * kLargePage};
  *reinterpret_cast<char*>(begin + kLargePage) = 1;
  const pid_t child = ::fork();
  if (child == 0) {
    MemoryMap map;
    if (!ReadOwn(&map)) ::_exit(1);
    const std::vector<Range> parts = Readable(map, range);
    const auto has = [&](const Range& part) { return part.Contains(begin + kLargePage); };
    ::_exit(std::any_of(parts.begin(), parts.end(), has) ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  ::munmap(memory, range.bytes());
}

TEST(MemoryMapTest, LeavesOutWhatAFileDoesNotHave) {
  const int fd = FileOf(2);
  ASSERT_GE(fd, 0);
  const Range range = Map(4, MAP_SHARED, fd);
  for (const size_t page : {size_t{0}, size_t{1}}) {
    *reinterpret_cast<char*>(range.begin + page * kPage) = 1;
  }
  MemoryMap map;
  ASSERT_TRUE(ReadOwn(&map));
  EXPECT_EQ(Bytes(Readable(map, range)), 2 * kPage);
  ::munmap(reinterpret_cast<void*>(range.begin), range.bytes());
  ::close(fd);
}

}  // namespace
}  // namespace tcmalloc
