// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/file_memory.h"

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include "base/bits.h"
#include "fakes/fake_file_tree.h"
#include "fakes/fault_injection.h"
#include "fakes/filled.h"
#include "system/auxv.h"
#include "system/memory.h"
#include "unit/bytes.h"

namespace tcmalloc {
namespace {

using ::tcmalloc::testing::CallsSeen;
using ::tcmalloc::testing::FakeFileTree;
using ::tcmalloc::testing::FaultMode;
using ::tcmalloc::testing::InjectFaults;
using ::tcmalloc::testing::IsFilled;
using ::tcmalloc::testing::ScopedFaultInjection;
using ::tcmalloc::testing::SystemCall;
using testing::kKiB;
using testing::kMiB;

constexpr size_t kWindow = 1024 * kMiB;

bool IsZero(const MemoryBlock& block) { return IsFilled(block.start, block.bytes, 0); }
uintptr_t AddressOf(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }

// The start of kWindow bytes of addresses that nothing occupies. Which these are depends on what
// the program is built with: a sanitizer has its shadow where the allocator's own window would be.
uintptr_t FreeAddresses() {
  void* const start =
      mmap(nullptr, kWindow + kMiB, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (start == MAP_FAILED) return 0;
  munmap(start, kWindow + kMiB);
  return AlignUp(AddressOf(start), kMiB);
}

TEST(FileRangesTest, FindsWhatWasAdded) {
  FileRanges ranges;
  EXPECT_EQ(ranges.Find(100, 900).end, 900u);
  EXPECT_EQ(ranges.Find(100, 900).advice, MADV_DONTNEED);
  ranges.Add(300, 100, MADV_REMOVE);
  ranges.Add(500, 100, -1);
  EXPECT_EQ(ranges.Find(100, 900).end, 300u);
  EXPECT_EQ(ranges.Find(100, 200).end, 200u);
  EXPECT_EQ(ranges.Find(300, 900).end, 400u);
  EXPECT_EQ(ranges.Find(300, 900).advice, MADV_REMOVE);
  EXPECT_EQ(ranges.Find(350, 360).end, 360u);
  EXPECT_EQ(ranges.Find(400, 900).end, 500u);
  EXPECT_EQ(ranges.Find(400, 900).advice, MADV_DONTNEED);
  EXPECT_EQ(ranges.Find(599, 900).end, 600u);
  EXPECT_EQ(ranges.Find(599, 900).advice, -1);
  EXPECT_EQ(ranges.Find(600, 900).end, 900u);
}

TEST(FileRangesTest, NeighboursOfOneKindAreOneRange) {
  FileRanges ranges;
  for (uintptr_t i = 0; i < 1000; ++i) {
    ASSERT_TRUE(ranges.HasRoom());
    ranges.Add(1'000'000 + i * 10, 10, MADV_REMOVE);
    ranges.Add(999'990 - i * 10, 10, MADV_REMOVE);
  }
  EXPECT_EQ(ranges.Find(999'999, 2'000'000).end, 1'010'000u);
  EXPECT_EQ(ranges.Find(0, 2'000'000).end, 990'000u);
  ranges.Add(1'010'000, 10, -1);
  EXPECT_EQ(ranges.Find(1'010'000, 2'000'000).advice, -1) << "of another kind";
}

TEST(FileRangesTest, ThereAreOnlySoMany) {
  FileRanges ranges;
  uintptr_t count = 0;
  for (; ranges.HasRoom(); ++count) ranges.Add(1000 + count * 100, 10, MADV_REMOVE);
  EXPECT_GE(count, 16u);
  EXPECT_EQ(ranges.Find(1000 + (count - 1) * 100, 1'000'000).advice, MADV_REMOVE);
}

// An emulator may say that it did, and leave the pages as they are.
bool SystemRemovesPagesOfFiles() {
  const auto page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  const int fd = memfd_create("probe", MFD_CLOEXEC);
  if (fd < 0 || ftruncate(fd, static_cast<off_t>(page)) != 0) return false;
  void* memory = mmap(nullptr, page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  if (memory == MAP_FAILED) return false;
  std::memset(memory, 1, page);
  const bool removed = madvise(memory, page, MADV_REMOVE) == 0 && IsFilled(memory, page, 0);
  munmap(memory, page);
  return removed;
}

// On files in a tmpfs where the machine has one, else in an ordinary file system.
class FileMemoryTest : public ::testing::Test {
 protected:
  FileMemoryTest() {
    const std::string shared = "/dev/shm/memfs." + std::to_string(getpid());
    directory_ = mkdir(shared.c_str(), 0700) == 0 ? shared : tree_.root();
    prefix_ = directory_ + "/heap";
  }
  ~FileMemoryTest() override { rmdir(directory_.c_str()); }

  SystemMemory::Config Memfs() const {
    return {.memfs = {.path = prefix_.c_str()},
            .window_limit = window_ + kWindow,
            .hint_start = window_};
  }
  // Files that lie in the directory by name.
  int Files() const {
    int count = 0;
    DIR* directory = opendir(directory_.c_str());
    while (const dirent* entry = readdir(directory)) count += entry->d_name[0] != '.' ? 1 : 0;
    closedir(directory);
    return count;
  }
  // True if /proc/self/maps says that the address is in a file of the directory.
  bool IsInFile(const void* address) const {
    std::ifstream maps("/proc/self/maps");
    for (std::string line; std::getline(maps, line);) {
      unsigned long start = 0;
      unsigned long end = 0;
      if (sscanf(line.c_str(), "%lx-%lx", &start, &end) != 2) continue;
      if (start <= AddressOf(address) && AddressOf(address) < end) {
        return line.find(directory_) != std::string::npos;
      }
    }
    return false;
  }

  const uintptr_t window_ = FreeAddresses();
  FakeFileTree tree_;
  std::string directory_;
  std::string prefix_;
  SystemMemory memory_;
};

TEST_F(FileMemoryTest, BlocksComeFromAnUnlinkedFile) {
  memory_.Configure(Memfs());
  ASSERT_NE(window_, 0u);
  uintptr_t expected = window_;
  for (const size_t bytes : {8 * kKiB, kMiB, 3 * kMiB}) {
    const MemoryBlock block = memory_.Allocate(bytes, 8 * kKiB);
    ASSERT_EQ(AddressOf(block.start), expected) << "side by side, in the window";
    EXPECT_TRUE(block.zeroed);
    EXPECT_TRUE(IsZero(block));
    EXPECT_TRUE(IsInFile(block.start));
    std::memset(block.start, 1, block.bytes);
    expected += block.bytes;
  }
  EXPECT_EQ(Files(), 0);
  EXPECT_EQ(memory_.stats().file_bytes, 4 * kMiB + 8 * kKiB);
  EXPECT_EQ(memory_.stats().mmap_bytes, memory_.stats().file_bytes);
}

TEST_F(FileMemoryTest, BlocksAreDisjointInTheFileWhateverTheirAlignment) {
  memory_.Configure(Memfs());
  std::vector<MemoryBlock> blocks;
  for (int i = 0; i < 20; ++i) {
    const size_t alignment = i % 3 == 0 ? 256 * kKiB : 8 * kKiB;
    blocks.push_back(memory_.Allocate(300 * kKiB, alignment));
    EXPECT_TRUE(IsAligned(AddressOf(blocks.back().start), alignment));
    std::memset(blocks.back().start, i + 1, blocks.back().bytes);
  }
  for (int i = 0; i < 20; ++i) {
    EXPECT_TRUE(IsFilled(blocks[static_cast<size_t>(i)].start, blocks[static_cast<size_t>(i)].bytes,
                         static_cast<char>(i + 1)));
  }
}

TEST_F(FileMemoryTest, ReleasedMemoryReadsAsZero) {
  if (!SystemRemovesPagesOfFiles()) GTEST_SKIP() << "no pages of files can be removed here";
  for (const bool map_private : {false, true}) {
    SystemMemory memory;
    SystemMemory::Config config = Memfs();
    config.memfs.map_private = map_private;
    memory.Configure(config);
    const MemoryBlock block = memory.Allocate(kMiB, 8 * kKiB);
    ASSERT_TRUE(IsInFile(block.start));
    std::memset(block.start, 1, block.bytes);
    auto* bytes = static_cast<char*>(block.start);
    ASSERT_TRUE(memory.Release(bytes + 64 * kKiB, 128 * kKiB)) << map_private;
    EXPECT_TRUE(IsFilled(bytes, 64 * kKiB, 1));
    EXPECT_TRUE(IsFilled(bytes + 64 * kKiB, 128 * kKiB, 0)) << map_private;
    EXPECT_TRUE(IsFilled(bytes + 192 * kKiB, block.bytes - 192 * kKiB, 1));
  }
}

TEST_F(FileMemoryTest, ReleasesTogetherWhatComesFromFilesAndElsewhere) {
  if (!SystemRemovesPagesOfFiles()) GTEST_SKIP() << "no pages of files can be removed here";
  SystemMemory::Config config = Memfs();
  config.memfs.limit = kMiB + 4 * kKiB;
  memory_.Configure(config);
  const MemoryBlock in_file = memory_.Allocate(kMiB, 8 * kKiB);
  const MemoryBlock elsewhere = memory_.Allocate(kMiB, 8 * kKiB);
  ASSERT_EQ(AddressOf(elsewhere.start), AddressOf(in_file.start) + kMiB);
  EXPECT_TRUE(IsInFile(in_file.start));
  EXPECT_FALSE(IsInFile(elsewhere.start));
  std::memset(in_file.start, 1, 2 * kMiB);
  EXPECT_TRUE(memory_.Release(in_file.start, 2 * kMiB));
  EXPECT_TRUE(IsFilled(in_file.start, 2 * kMiB, 0));
}

TEST_F(FileMemoryTest, ARefusedReleaseIsToldAndLosesNothingElse) {
  memory_.Configure(Memfs());
  const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
  std::memset(block.start, 1, block.bytes);
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kMadvise, {.mode = FaultMode::kFrom, .error = EOPNOTSUPP});
  EXPECT_FALSE(memory_.Release(block.start, block.bytes));
  EXPECT_TRUE(IsFilled(block.start, block.bytes, 1));
  EXPECT_FALSE(memory_.Unmap(block.start, block.bytes));
}

TEST_F(FileMemoryTest, TheLimitLeavesTheRestToOthers) {
  SystemMemory::Config config = Memfs();
  config.memfs.limit = 8 * kMiB;
  memory_.Configure(config);
  size_t in_file = 0;
  for (int i = 0; i < 16; ++i) {
    const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
    ASSERT_NE(block.start, nullptr);
    in_file += IsInFile(block.start) ? block.bytes : 0;
  }
  EXPECT_GE(in_file, 7 * kMiB);
  EXPECT_LE(in_file, 8 * kMiB);
  EXPECT_EQ(memory_.stats().file_bytes, in_file);
}

TEST_F(FileMemoryTest, TheLimitOnTheSizeOfFilesLeavesTheRestToOthers) {
  memory_.Configure(Memfs());
  rlimit saved = {};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &saved), 0);
  const rlimit limit = {.rlim_cur = 2 * kMiB, .rlim_max = saved.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  const MemoryBlock fits = memory_.Allocate(kMiB, 8 * kKiB);
  const MemoryBlock too_large = memory_.Allocate(4 * kMiB, 8 * kKiB);
  const MemoryBlock fits_as_well = memory_.Allocate(kMiB / 2, 8 * kKiB);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &saved), 0);
  EXPECT_TRUE(IsInFile(fits.start));
  ASSERT_NE(too_large.start, nullptr);
  EXPECT_FALSE(IsInFile(too_large.start));
  EXPECT_TRUE(IsInFile(fits_as_well.start));
  std::memset(fits.start, 1, fits.bytes);
  std::memset(too_large.start, 1, too_large.bytes);
}

TEST_F(FileMemoryTest, AFileMayHaveLittle) {
  EXPECT_FALSE(memory_.IsFinite());
  memory_.Configure(Memfs());
  EXPECT_TRUE(memory_.IsFinite());
}

TEST_F(FileMemoryTest, ALargeRequestDoesNotEndTheFile) {
  SystemMemory::Config config = Memfs();
  config.memfs.limit = 8 * kMiB;
  memory_.Configure(config);
  EXPECT_FALSE(IsInFile(memory_.Allocate(20 * kMiB, 8 * kKiB).start));
  EXPECT_TRUE(IsInFile(memory_.Allocate(kMiB, 8 * kKiB).start));
}

TEST_F(FileMemoryTest, WithoutFallbackTheRestFails) {
  SystemMemory::Config config = Memfs();
  config.memfs.limit = 2 * kMiB;
  config.memfs_only = true;
  memory_.Configure(config);
  EXPECT_NE(memory_.Allocate(kMiB, 8 * kKiB).start, nullptr);
  errno = 0;
  EXPECT_EQ(memory_.Allocate(4 * kMiB, 8 * kKiB).start, nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(memory_.stats().failures, 1u);
}

TEST_F(FileMemoryTest, AFileThatCannotBeMadeIsReportedOnce) {
  for (const SystemCall call : {SystemCall::kOpen, SystemCall::kFstatfs}) {
    ScopedFaultInjection injection;
    InjectFaults(call, {.mode = FaultMode::kFrom, .error = EACCES});
    SystemMemory memory;
    SystemMemory::Config config = Memfs();
    config.memfs_only = true;
    ::testing::internal::CaptureStderr();
    memory.Configure(config);
    EXPECT_NE(memory.Allocate(kMiB, 8 * kKiB).start, nullptr) << "other memory";
    EXPECT_EQ(::testing::internal::GetCapturedStderr(),
              "tcmalloc: no memory from " + prefix_ + ".* (errno 13); taking other memory\n");
    EXPECT_EQ(CallsSeen(SystemCall::kClose), call == SystemCall::kFstatfs ? 1u : 0u);
  }
  SystemMemory memory;
  SystemMemory::Config config = Memfs();
  const std::string long_path(5000, 'x');
  config.memfs.path = long_path.c_str();
  ::testing::internal::CaptureStderr();
  memory.Configure(config);
  EXPECT_NE(::testing::internal::GetCapturedStderr(), "");
  EXPECT_NE(memory.Allocate(kMiB, 8 * kKiB).start, nullptr);
}

TEST_F(FileMemoryTest, ATakenNameIsReplacedByAnother) {
  ScopedFaultInjection injection;
  InjectFaults(SystemCall::kOpen, {.mode = FaultMode::kOnce, .k = 1, .error = EEXIST});
  memory_.Configure(Memfs());
  EXPECT_TRUE(IsInFile(memory_.Allocate(kMiB, 8 * kKiB).start));
}

TEST_F(FileMemoryTest, AFileThatCannotGrowIsGivenUp) {
  memory_.Configure(Memfs());
  {
    ScopedFaultInjection injection;
    InjectFaults(SystemCall::kFtruncate, {.mode = FaultMode::kOnce, .k = 1, .error = ENOSPC});
    EXPECT_FALSE(IsInFile(memory_.Allocate(kMiB, 8 * kKiB).start));
  }
  EXPECT_FALSE(IsInFile(memory_.Allocate(kMiB, 8 * kKiB).start));
}

TEST_F(FileMemoryTest, AFailureToMapIsTheLastUnlessItIsToBeIgnored) {
  for (const bool ignore : {false, true}) {
    SystemMemory memory;
    SystemMemory::Config config = Memfs();
    config.memfs.ignore_map_failures = ignore;
    memory.Configure(config);
    {
      ScopedFaultInjection restored_afterwards;
      system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                             off_t offset) {
        if (fd < 0) return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
        errno = ENOMEM;
        return MAP_FAILED;
      };
      const MemoryBlock block = memory.Allocate(kMiB, 8 * kKiB);
      EXPECT_NE(block.start, nullptr);
      EXPECT_FALSE(IsInFile(block.start));
    }
    EXPECT_EQ(IsInFile(memory.Allocate(kMiB, 8 * kKiB).start), ignore);
  }
}

using FileMemoryDeathTest = FileMemoryTest;

TEST_F(FileMemoryDeathTest, AbortsIfItIsToldTo) {
  SystemMemory::Config config = Memfs();
  config.memfs.limit = kMiB;
  config.abort_without_memfs = true;
  memory_.Configure(config);
  EXPECT_DEATH(memory_.Allocate(4 * kMiB, 8 * kKiB),
               "tcmalloc: 4194304 bytes cannot be had from .*, and "
               "TCMALLOC_MEMFS_ABORT_ON_FAIL is set");
}

int HugePages(int fd, struct statfs* information) {
  const int result = real_system_calls.fstatfs(fd, information);
  information->f_bsize = 2 * kMiB;
  return result;
}

// A tmpfs that says it is a hugetlbfs.
TEST_F(FileMemoryTest, LargePagesRoundEveryBlockUpAndStay) {
  system_calls.fstatfs = HugePages;
  memory_.Configure(Memfs());
  system_calls.fstatfs = real_system_calls.fstatfs;
  for (int i = 0; i < 3; ++i) {
    const MemoryBlock block = memory_.Allocate(3 * kMiB, 8 * kKiB);
    ASSERT_TRUE(IsInFile(block.start));
    EXPECT_EQ(block.bytes, 4 * kMiB);
    EXPECT_TRUE(IsAligned(AddressOf(block.start), 2 * kMiB));
    std::memset(block.start, 1, block.bytes);
    EXPECT_FALSE(memory_.Release(block.start, block.bytes));
    EXPECT_TRUE(IsFilled(block.start, block.bytes, 1));
  }
}

TEST_F(FileMemoryTest, RealHugePages) {
  const std::string mount_point = tree_.root();
  if (mount("none", mount_point.c_str(), "hugetlbfs", 0, nullptr) != 0) {
    GTEST_SKIP() << "no hugetlbfs can be mounted here: " << std::strerror(errno);
  }
  {
    SystemMemory::Config config = Memfs();
    const std::string path = mount_point + "/heap";
    config.memfs.path = path.c_str();
    memory_.Configure(config);
    const MemoryBlock block = memory_.Allocate(kMiB, 8 * kKiB);
    ASSERT_NE(block.start, nullptr) << "from elsewhere where there are no huge pages";
    std::memset(block.start, 1, block.bytes);
    const bool from_file = memory_.stats().file_bytes != 0;
    EXPECT_GE(block.bytes, from_file ? 2 * kMiB : kMiB);
  }
  umount2(mount_point.c_str(), MNT_DETACH);
}

TEST_F(FileMemoryTest, WhatAForkedChildWritesIsItsOwnOnlyWherePrivate) {
  for (const bool map_private : {false, true}) {
    SystemMemory memory;
    SystemMemory::Config config = Memfs();
    config.memfs.map_private = map_private;
    memory.Configure(config);
    auto* bytes = static_cast<char*>(memory.Allocate(kMiB, 8 * kKiB).start);
    const pid_t child = fork();
    if (child == 0) {
      *bytes = 1;
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(*bytes, map_private ? 0 : 1);
  }
}

// A regular file stands in for the device.
class DeviceMemoryTest : public FileMemoryTest {
 protected:
  static constexpr size_t kStart = kMiB;

  DeviceMemoryTest() {
    std::ofstream(path_) << std::string(kStart, 'a') << std::string(3 * kMiB, 'b');
  }
  ~DeviceMemoryTest() override { unlink(path_.c_str()); }

  SystemMemory::Config Device(uint64_t limit = 4 * kMiB) const {
    return {.device = {.path = path_.c_str(), .device = true, .start = kStart, .limit = limit},
            .window_limit = window_ + kWindow,
            .hint_start = window_};
  }

  const std::string path_ = prefix_ + ".device";
};

TEST_F(DeviceMemoryTest, IsTakenFromItsStartOn) {
  memory_.Configure(Device());
  const MemoryBlock first = memory_.Allocate(kMiB, 4 * kKiB);
  const MemoryBlock second = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_FALSE(first.zeroed);
  EXPECT_TRUE(IsFilled(first.start, first.bytes, 'b'));
  std::memset(first.start, 'c', first.bytes);
  std::memset(second.start, 'd', second.bytes);
  std::ifstream file(path_);
  std::string contents(4 * kMiB, '\0');
  file.read(contents.data(), static_cast<std::streamsize>(contents.size()));
  EXPECT_EQ(contents, std::string(kMiB, 'a') + std::string(kMiB, 'c') + std::string(kMiB, 'd') +
                          std::string(kMiB, 'b'));
}

TEST_F(DeviceMemoryTest, TheLimitLeavesTheRestToOthers) {
  memory_.Configure(Device(3 * kMiB));
  for (int i = 0; i < 4; ++i) {
    const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
    ASSERT_NE(block.start, nullptr);
    EXPECT_EQ(IsInFile(block.start), i < 2);
    EXPECT_EQ(block.zeroed, i >= 2);
  }
}

TEST_F(DeviceMemoryTest, IsNeverReleased) {
  memory_.Configure(Device());
  const MemoryBlock block = memory_.Allocate(kMiB, 4 * kKiB);
  EXPECT_FALSE(memory_.Release(block.start, block.bytes));
  EXPECT_FALSE(memory_.Unmap(block.start, block.bytes));
  EXPECT_TRUE(IsFilled(block.start, block.bytes, 'b'));
}

TEST_F(DeviceMemoryTest, ComesAfterAMemoryFileSystem) {
  SystemMemory::Config config = Device();
  config.memfs = {.path = prefix_.c_str(), .limit = kMiB};
  memory_.Configure(config);
  EXPECT_TRUE(memory_.Allocate(512 * kKiB, 4 * kKiB).zeroed);
  EXPECT_FALSE(memory_.Allocate(kMiB, 4 * kKiB).zeroed) << "the device";
}

TEST_F(DeviceMemoryTest, ADeviceThatIsNotThereIsReported) {
  SystemMemory::Config config = Device();
  config.device.path = "/nowhere/mem";
  ::testing::internal::CaptureStderr();
  memory_.Configure(config);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "tcmalloc: no memory from /nowhere/mem (errno 2); taking other memory\n");
  EXPECT_TRUE(memory_.Allocate(kMiB, 4 * kKiB).zeroed);
}

}  // namespace
}  // namespace tcmalloc
