// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks that are copied when a block is allocated and walked when somebody looks.

#include "heap_profile/early_stacks.h"

#include <dlfcn.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "fakes/thread_sanitizer.h"
#include "heap_profile/caller_stack.h"
#include "system/system_calls.h"
#include "unwind/stack_trace.h"

namespace tcmalloc {
namespace {

using testing::kThreadSanitizer;
using Frames = std::vector<uintptr_t>;

// A stack, and what a walk found at the same time. Their innermost addresses are two calls in the
// same function.
struct Noted {
  StackId id = 0;
  Frames walked;
  uintptr_t frame = 0;  // of the innermost call
};

class EarlyStacksTest : public ::testing::Test {
 public:
  __attribute__((noinline)) void Note(Noted* noted, int depth) {
    if (depth > 0) {
      Note(noted, depth - 1);
    } else {
      noted->frame = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
      noted->id = early_.Add(table_);
      static thread_local void* frames[kMostFrames];
      const int count = CaptureStack(frames, kMostFrames, 0);
      for (int i = 0; i < count; ++i) {
        noted->walked.push_back(reinterpret_cast<uintptr_t>(frames[i]));
      }
    }
    asm volatile("");
  }

 protected:
  // Returns the depth at which calls of Note take so many bytes. Sanitizers make large frames.
  int DepthOf(size_t bytes) {
    uintptr_t frames[2] = {};
    for (const int depth : {0, 1}) {
      Noted noted;
      Note(&noted, depth);
      frames[depth] = noted.frame;
      table_.Release(noted.id);
    }
    return static_cast<int>(bytes / (frames[0] - frames[1]));
  }
  // The frames without the innermost one, in which the two captures differ.
  Frames FramesOf(StackId id) {
    const StackTable::Reader reader(table_);
    const auto frames = reader.frames(id);
    return frames.empty() ? Frames() : Frames(frames.begin() + 1, frames.end());
  }
  // What CaptureStack finds begins with the return address of Note.
  static Frames WithoutLast(Frames frames, size_t size) {
    frames.resize(std::min(frames.size(), size));
    return frames;
  }

  std::unique_ptr<StackTable> owned_table_ = std::make_unique<StackTable>();
  StackTable& table_ = *owned_table_;
  std::unique_ptr<EarlyStacks> owned_ = std::make_unique<EarlyStacks>();
  EarlyStacks& early_ = *owned_;
};

TEST_F(EarlyStacksTest, AreWalkedWhenTheirFunctionsHaveReturned) {
  for (const int depth : {0, 1, 7, 20}) {
    Noted noted;
    Note(&noted, depth);
    ASSERT_NE(noted.id, 0u);
    EXPECT_TRUE(FramesOf(noted.id).empty()) << "not walked yet";
    early_.WalkAll(table_);
    const Frames frames = FramesOf(noted.id);
    EXPECT_GE(frames.size(), std::min<size_t>(noted.walked.size(), kMostFrames - 1));
    EXPECT_EQ(frames, WithoutLast(noted.walked, frames.size())) << depth;
    table_.Release(noted.id);
  }
  EXPECT_EQ(early_.copies(), 0u);
}

TEST_F(EarlyStacksTest, ManyAreWalkedTogether) {
  // Up to 18 KiB, for which there are slots of many sizes.
  const int step = DepthOf(size_t{2} << 10);
  std::vector<Noted> all(10);
  for (size_t i = 0; i < all.size(); ++i) Note(&all[i], static_cast<int>(i) * step);
  early_.WalkAll(table_);
  for (Noted& noted : all) {
    ASSERT_NE(noted.id, 0u);
    const Frames frames = FramesOf(noted.id);
    EXPECT_FALSE(frames.empty());
    EXPECT_EQ(frames, WithoutLast(noted.walked, frames.size()));
  }
}

TEST_F(EarlyStacksTest, OneStandsForAllThatAreEqual) {
  std::vector<Noted> all(5);
  for (Noted& noted : all) Note(&noted, 3);
  Noted other;
  Note(&other, 4);
  early_.WalkAll(table_);
  const StackTable::Reader reader(table_);
  for (const Noted& noted : all) {
    EXPECT_EQ(reader.FirstEqual(noted.id), reader.FirstEqual(all[0].id));
  }
  EXPECT_NE(reader.FirstEqual(other.id), reader.FirstEqual(all[0].id));
}

TEST_F(EarlyStacksTest, AnUnusedOneMakesRoom) {
  std::set<StackId> ids;
  for (int i = 0; i < 10'000; ++i) {
    Noted noted;
    Note(&noted, i % 20);
    ASSERT_NE(noted.id, 0u);
    ids.insert(noted.id);
    table_.Release(noted.id);
  }
  // Those of different depths may need room of different sizes.
  EXPECT_LE(ids.size(), 12u);
  EXPECT_LE(early_.copies(), 12u);
}

TEST_F(EarlyStacksTest, OneThatIsReadMakesNoRoom) {
  Noted first;
  Note(&first, 3);
  {
    const StackTable::Reader reader(table_);
    table_.Release(first.id);
    Noted second;
    Note(&second, 3);
    EXPECT_NE(second.id, first.id) << "the reader may take a reference";
    EXPECT_TRUE(table_.Retain(first.id));
  }
  early_.WalkAll(table_);
  EXPECT_FALSE(FramesOf(first.id).empty());
}

TEST_F(EarlyStacksTest, TheNumberIsBounded) {
  constexpr size_t kTooMany = EarlyStacks::kMemoryBytes / 256;
  std::vector<StackId> ids;
  for (size_t i = 0; i < kTooMany; ++i) {
    Noted noted;
    Note(&noted, 2);
    if (noted.id == 0) break;
    ids.push_back(noted.id);
  }
  EXPECT_GT(ids.size(), 10u);
  EXPECT_LT(ids.size(), kTooMany);
  early_.WalkAll(table_);
  for (const StackId id : ids) EXPECT_FALSE(FramesOf(id).empty());
  Noted noted;
  Note(&noted, 2);
  EXPECT_NE(noted.id, 0u) << "there is room again";
}

TEST_F(EarlyStacksTest, WithoutMemoryStacksAreWalkedAtOnce) {
  const SystemCalls saved = system_calls;
  system_calls.mmap = [](void*, size_t, int, int, int, off_t) {
    errno = ENOMEM;
    return MAP_FAILED;
  };
  errno = 0;
  const StackId id = early_.Add(table_);
  const int after = errno;
  early_.WalkAll(table_);
  system_calls = saved;
  EXPECT_EQ(id, 0u);
  EXPECT_EQ(after, 0);
  EXPECT_EQ(early_.copies(), 0u);
  Noted noted;
  Note(&noted, 2);
  EXPECT_NE(noted.id, 0u);
}

TEST_F(EarlyStacksTest, TakeASmallPartOfALimit) {
  static size_t mapped;
  mapped = 0;
  const SystemCalls saved = system_calls;
  system_calls.getrlimit = [](int resource, rlimit* limit) {
    *limit = {resource == RLIMIT_DATA ? rlim_t{60} << 20 : RLIM_INFINITY, RLIM_INFINITY};
    return 0;
  };
  system_calls.mmap = [](void* address, size_t bytes, int protection, int flags, int fd,
                         off_t offset) {
    mapped = std::max(mapped, bytes);
    return real_system_calls.mmap(address, bytes, protection, flags, fd, offset);
  };
  Noted noted;
  Note(&noted, 2);
  system_calls = saved;
  EXPECT_NE(noted.id, 0u);
  EXPECT_GT(mapped, 0u);
  EXPECT_LE(mapped, (size_t{60} << 20) / EarlyStacks::kLimitShare);
}

TEST_F(EarlyStacksTest, AStackWithFramesIsSweptAsAnyOther) {
  for (int i = 0; i < 20'000; ++i) {
    Noted noted;
    Note(&noted, i % 20);
    ASSERT_NE(noted.id, 0u);
    early_.WalkAll(table_);
    table_.Release(noted.id);
  }
  EXPECT_EQ(table_.stats().stacks, 0u);
  EXPECT_LT(table_.stats().bytes, size_t{2} << 20);
}

TEST_F(EarlyStacksTest, ThreadsAddWhileOthersWalk) {
  std::atomic<bool> done{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 3; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) {
        Noted noted;
        Note(&noted, (i + t) % 9);
        if (noted.id == 0) continue;
        const Frames frames = FramesOf(noted.id);
        if (frames != WithoutLast(noted.walked, frames.size())) ++wrong;
        table_.Release(noted.id);
      }
    });
  }
  std::thread walker([&] {
    while (!done) early_.WalkAll(table_);
  });
  for (std::thread& thread : threads) thread.join();
  done = true;
  walker.join();
  EXPECT_EQ(wrong, 0);
}

TEST_F(EarlyStacksTest, AThreadMayHaveEnded) {
  if (kThreadSanitizer) GTEST_SKIP() << "its thread-local variables make each stack a deep one";
  Noted noted;
  std::thread([&] { Note(&noted, 4); }).join();
  ASSERT_NE(noted.id, 0u);
  early_.WalkAll(table_);
  const Frames frames = FramesOf(noted.id);
  EXPECT_GT(frames.size(), 5u);
  EXPECT_EQ(frames, WithoutLast(noted.walked, frames.size()));
}

TEST_F(EarlyStacksTest, ALibraryOnTheStackMayBeGone) {
  void* const library = ::dlopen(TCM_PLUGIN, RTLD_NOW);
  ASSERT_NE(library, nullptr) << ::dlerror();
  static Noted noted;
  static EarlyStacksTest* test;
  test = this;
  noted = {};
  reinterpret_cast<void (*)(void (*)())>(::dlsym(library, "CallBack"))(
      +[] { test->Note(&noted, 2); });
  ::dlclose(library);
  ASSERT_NE(noted.id, 0u);
  early_.WalkAll(table_);
  // As far as the library.
  EXPECT_GE(FramesOf(noted.id).size(), 3u);
}

TEST_F(EarlyStacksTest, ADeepOneIsWalkedAtOnce) {
  Noted noted;
  Note(&noted, DepthOf(2 * EarlyStacks::kMostBytes));
  EXPECT_EQ(noted.id, 0u);
}

TEST_F(EarlyStacksTest, AnotherMethodWalksAtOnce) {
  SetUnwindMethod(UnwindMethod::kFramePointers);
  EXPECT_EQ(early_.Add(table_), 0u);
  SetUnwindMethod(UnwindMethod::kTables);
}

}  // namespace
}  // namespace tcmalloc
