// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// The process's heap, in a program whose malloc is another one, so that nothing else changes it.

#include "extension/system_allocator.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdint>
#include <thread>

#include "allocator/allocate.h"
#include "allocator/deallocate.h"
#include "allocator/slow_path.h"
#include "heap/heap.h"

namespace tcmalloc::testing {
namespace {

constexpr size_t kPage = 4096;

void* TakePage() {
  size_t actual = 0;
  void* page = CurrentSystemAllocator()->Alloc(kPage, &actual, kPage);
  return actual >= kPage ? page : nullptr;
}

TEST(SystemAllocatorTest, GivesMemoryToThoseWhoAsk) {
  auto* page = static_cast<char*>(TakePage());
  ASSERT_NE(page, nullptr);
  EXPECT_EQ(page[0], 0);
  page[0] = 1;
  EXPECT_EQ(reinterpret_cast<uintptr_t>(page) % kPage, 0u);
}

TEST(SystemAllocatorTest, InsideTheSlowPathItFails) {
  const SlowPath interrupted;
  errno = 0;
  EXPECT_EQ(TakePage(), nullptr);
  EXPECT_EQ(errno, ENOMEM);
}

// Passes on what the heap asks for, as programs do that count or log it.
class PassingAllocator final : public SysAllocator {
 public:
  explicit PassingAllocator(SysAllocator* next) : next_(next) {}
  void* Alloc(size_t size, size_t* actual_size, size_t alignment) override {
    ++calls;
    if (fork_inside) forked_child_ends = ForkAndWait();
    return next_->Alloc(size, actual_size, alignment);
  }

  int calls = 0;
  bool fork_inside = false;
  bool forked_child_ends = false;

 private:
  static bool ForkAndWait() {
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int status = 0;
    return waitpid(child, &status, 0) == child && status == 0;
  }

  SysAllocator* next_;
};

class RegisteredAllocatorTest : public ::testing::Test {
 protected:
  RegisteredAllocatorTest() { RegisterSystemAllocator(&passing_); }
  ~RegisteredAllocatorTest() override { RegisterSystemAllocator(nullptr); }

  // More than the heap may have left.
  static void Grow() {
    void* block = Allocate(heap.memory().stats().mmap_bytes + (size_t{64} << 20));
    ASSERT_NE(block, nullptr);
    Deallocate(block);
  }

  PassingAllocator passing_{CurrentSystemAllocator()};
};

TEST_F(RegisteredAllocatorTest, MayCallTheSystems) {
  Grow();
  EXPECT_GE(passing_.calls, 1);
}

TEST_F(RegisteredAllocatorTest, MayFork) {
  passing_.fork_inside = true;
  Grow();
  EXPECT_TRUE(passing_.forked_child_ends);
}

// A child whose parent held the lock of the system's memory in another thread would wait for good.
TEST(SystemAllocatorTest, ChildrenOfForkFindItsLockFree) {
  constexpr int kForks = 100;
  ASSERT_NE(TakePage(), nullptr);
  std::atomic<bool> stop{false};
  std::atomic<int> failures{0};
  std::thread taker([&] {
    while (!stop) failures += TakePage() == nullptr ? 1 : 0;
  });
  int sound = 0;
  for (int i = 0; i < kForks; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      _exit(TakePage() != nullptr ? 0 : 1);
    }
    int status = 0;
    sound += waitpid(child, &status, 0) == child && status == 0 ? 1 : 0;
    if (sound <= i) break;
  }
  stop = true;
  taker.join();
  EXPECT_EQ(sound, kForks);
  EXPECT_EQ(failures, 0);
}

}  // namespace
}  // namespace tcmalloc::testing
