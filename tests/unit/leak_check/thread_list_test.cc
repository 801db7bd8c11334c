// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/thread_list.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <semaphore>
#include <thread>
#include <vector>

#include "leak_check/memory_map.h"
#include "leak_check/thread_stop.h"
#include "unit/leak_check/own_memory_map.h"

namespace tcmalloc {
namespace {

// A thread that waits until its end.
class WaitingThread {
 public:
  WaitingThread() : thread_([this] { Run(); }) { started_.acquire(); }
  ~WaitingThread() {
    end_.release();
    thread_.join();
  }
  pid_t number() const { return number_; }
  uintptr_t pointer() const { return pointer_; }

 private:
  void Run() {
    number_ = ::gettid();
    pointer_ = OwnThreadPointer();
    started_.release();
    end_.acquire();
  }

  pid_t number_ = 0;
  uintptr_t pointer_ = 0;
  std::binary_semaphore started_{0};
  std::binary_semaphore end_{0};
  std::thread thread_;
};

std::vector<std::unique_ptr<WaitingThread>> StartThreads(size_t count) {
  std::vector<std::unique_ptr<WaitingThread>> threads;
  while (threads.size() < count) threads.push_back(std::make_unique<WaitingThread>());
  return threads;
}

std::map<pid_t, uintptr_t> AllOf(const ThreadList& list) {
  std::map<pid_t, uintptr_t> found;
  list.ForEach([&](pid_t number, uintptr_t pointer) { found[number] = pointer; });
  return found;
}

TEST(ThreadListTest, FindsEachThread) {
  const auto threads = StartThreads(5);
  MemoryMap memory;
  ASSERT_TRUE(ReadOwn(&memory));
  const ThreadList list(::gettid(), OwnThreadPointer(), memory);
  EXPECT_EQ(list.Find(::gettid()), OwnThreadPointer());
  for (const auto& thread : threads) EXPECT_EQ(list.Find(thread->number()), thread->pointer());
  EXPECT_EQ(list.Find(1 << 22), 0u);
}

TEST(ThreadListTest, FindsTheOthersFromAnyThread) {
  const auto threads = StartThreads(2);
  const pid_t first = ::gettid();
  const uintptr_t pointer = OwnThreadPointer();
  std::thread([&] {
    MemoryMap memory;
    ASSERT_TRUE(ReadOwn(&memory));
    const ThreadList list(::gettid(), OwnThreadPointer(), memory);
    EXPECT_EQ(list.Find(first), pointer);
    for (const auto& thread : threads) EXPECT_EQ(list.Find(thread->number()), thread->pointer());
  }).join();
}

TEST(ThreadListTest, LeavesOutThreadsThatHaveEnded) {
  const auto threads = StartThreads(2);
  pid_t ended = 0;
  std::thread([&] { ended = ::gettid(); }).join();
  MemoryMap memory;
  ASSERT_TRUE(ReadOwn(&memory));
  const auto found = AllOf(ThreadList(::gettid(), OwnThreadPointer(), memory));
  EXPECT_EQ(found.count(ended), 0u);
  for (const auto& thread : threads) EXPECT_EQ(found.count(thread->number()), 1u);
}

#if defined(__x86_64__)  // where the descriptor begins at the thread pointer
// Finds a thread's link as the list's users know it: two words in its descriptor that lead to
// others which lead back, followed by its number.
uintptr_t** LinkOf(const WaitingThread& thread, const MemoryMap& memory) {
  constexpr size_t kSearched = 512;
  auto** word = reinterpret_cast<uintptr_t**>(thread.pointer());
  for (size_t i = 0; i < kSearched; ++i, ++word) {
    if (static_cast<pid_t>(reinterpret_cast<uintptr_t>(word[2])) != thread.number()) continue;
    const MappedRange* next = memory.Find(reinterpret_cast<uintptr_t>(word[0]));
    if (next == nullptr || !next->readable) continue;
    if (word[0][1] == reinterpret_cast<uintptr_t>(word)) return word;
  }
  return nullptr;
}

TEST(ThreadListTest, FindsTheOthersWhileOneLeavesTheList) {
  const auto threads = StartThreads(5);
  MemoryMap memory;
  ASSERT_TRUE(ReadOwn(&memory));
  for (const auto& leaving : threads) {
    uintptr_t** link = LinkOf(*leaving, memory);
    ASSERT_NE(link, nullptr);
    // The first of the two steps by which an element leaves a list.
    uintptr_t* next = link[0];
    next[1] = reinterpret_cast<uintptr_t>(link[1]);
    const ThreadList list(::gettid(), OwnThreadPointer(), memory);
    for (const auto& thread : threads) {
      EXPECT_EQ(list.Find(thread->number()), thread->pointer());
    }
    EXPECT_EQ(list.Find(::gettid()), OwnThreadPointer());
    next[1] = reinterpret_cast<uintptr_t>(link);
  }
}
#endif

// Lists as libc makes them, in memory whose address the test chooses.
class MadeUpLists {
 public:
  // The words of a list's head or of a descriptor's link, and what lies behind it.
  struct Link {
    Link* next;
    Link* previous;
    uintptr_t number;
  };
  static constexpr size_t kDistance = 8;  // of links, in words, from the thread pointer

  explicit MadeUpLists(uintptr_t address)
      : memory_(::mmap(reinterpret_cast<void*>(address), kBytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)) {
    if (memory_ != reinterpret_cast<void*>(address)) return;
    for (size_t i = 0; i < 3; ++i) head(i)->next = head(i)->previous = head(i);
  }
  ~MadeUpLists() { ::munmap(memory_, kBytes); }

  bool ok() const { return memory_ != MAP_FAILED; }
  // The heads of three lists lie side by side.
  Link* head(size_t i) const {
    return reinterpret_cast<Link*>(static_cast<uintptr_t*>(memory_) + 2 * i);
  }
  uintptr_t Pointer(size_t thread) const {
    return reinterpret_cast<uintptr_t>(memory_) + (thread + 1) * kThreadBytes;
  }
  void Add(size_t list, size_t thread, pid_t number) {
    auto* link = reinterpret_cast<Link*>(reinterpret_cast<uintptr_t*>(Pointer(thread)) + kDistance);
    *link = {head(list)->next, head(list), static_cast<uintptr_t>(number)};
    head(list)->next->previous = link;
    head(list)->next = link;
  }

 private:
  static constexpr size_t kThreadBytes = 8192;
  static constexpr size_t kBytes = 16 * kThreadBytes;
  void* memory_;
};

// The lower half of a head's address may look like the number of a thread.
TEST(ThreadListTest, TellsHeadsFromThreads) {
  for (const uintptr_t address : {0x3000'0000'1000, 0x3000'8000'0000, 0x3000'0040'0000}) {
    MadeUpLists lists(address);
    ASSERT_TRUE(lists.ok());
    lists.Add(1, 0, 1000);
    for (size_t i = 1; i < 6; ++i) lists.Add(0, i, static_cast<pid_t>(1000 + i));
    lists.Add(2, 6, 0);
    MemoryMap memory;
    ASSERT_TRUE(ReadOwn(&memory));
    const auto found = AllOf(ThreadList(1000, lists.Pointer(0), memory));
    EXPECT_EQ(found.size(), 6u);
    for (size_t i = 0; i < 6; ++i) {
      const auto entry = found.find(static_cast<pid_t>(1000 + i));
      ASSERT_NE(entry, found.end());
      EXPECT_EQ(entry->second, lists.Pointer(i));
    }
  }
}

}  // namespace
}  // namespace tcmalloc
