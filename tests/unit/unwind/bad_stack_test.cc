// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Stacks that are damaged, end early, or are not a thread's own.

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "fakes/address_sanitizer.h"
#include "fakes/thread_sanitizer.h"
#include "unwind/machine.h"
#include "unwind/readable_memory.h"
#include "unwind/stack_trace.h"

namespace tcmalloc::testing {
namespace {

constexpr int kMost = 256;

// Pages with one that cannot be read after them.
class GuardedPages {
 public:
  explicit GuardedPages(size_t pages) : bytes_(pages * page_bytes()) {
    memory_ = static_cast<char*>(::mmap(nullptr, bytes_ + page_bytes(), PROT_READ | PROT_WRITE,
                                        MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory_ + bytes_, page_bytes(), PROT_NONE);
  }
  ~GuardedPages() { ::munmap(memory_, bytes_ + page_bytes()); }
  GuardedPages(const GuardedPages&) = delete;
  GuardedPages& operator=(const GuardedPages&) = delete;

  static size_t page_bytes() { return static_cast<size_t>(::sysconf(_SC_PAGESIZE)); }
  uintptr_t start() const { return reinterpret_cast<uintptr_t>(memory_); }
  uintptr_t end() const { return start() + bytes_; }
  uintptr_t* word(uintptr_t address) const { return reinterpret_cast<uintptr_t*>(address); }

 private:
  size_t bytes_;
  char* memory_;
};

Registers MakeRegisters(uintptr_t pc, uintptr_t sp, uintptr_t fp) {
  Registers registers;
  registers.known = 0;
  registers.Set(machine::kPc, pc);
  registers.Set(machine::kStackPointer, sp);
  registers.Set(machine::kFramePointer, fp);
  return registers;
}

int CaptureWith(const Registers& registers, UnwindMethod method, void** frames) {
  SetUnwindMethod(method);
  const int count = CaptureCallers(registers, {.addresses = frames, .limit = kMost}, 0);
  SetUnwindMethod(UnwindMethod::kTables);
  return count;
}

TEST(ReadableMemoryTest, TellsWhatCanBeRead) {
  const GuardedPages pages(1);
  EXPECT_TRUE(IsReadable(pages.start()));
  EXPECT_TRUE(IsReadable(pages.start(), GuardedPages::page_bytes()));
  EXPECT_FALSE(IsReadable(pages.end()));
  EXPECT_FALSE(IsReadable(pages.end() - 8, 16));
  EXPECT_FALSE(IsReadable(0));
  EXPECT_FALSE(IsReadable(UINTPTR_MAX - 7));
  EXPECT_FALSE(IsReadable(UINTPTR_MAX - 7, 100));
  EXPECT_FALSE(IsReadable(uintptr_t{1} << 63));
}

TEST(ReadableMemoryTest, KeepsErrno) {
  errno = 123;
  EXPECT_FALSE(IsReadable(0));
  EXPECT_EQ(errno, 123);
}

TEST(ReadableMemoryTest, ReadsNothingBelowTheStackPointer) {
  const GuardedPages pages(2);
  StackMemory memory;
  memory.MoveTo(pages.start() + 1024, false);
  uintptr_t word = 0;
  EXPECT_TRUE(memory.Read(pages.start() + 1024, &word));
  EXPECT_FALSE(memory.Read(pages.start() + 512, &word));
  EXPECT_FALSE(memory.Read(pages.start() + 1028, &word)) << "not aligned";
  EXPECT_TRUE(memory.Read(pages.end() - 8, &word));
  EXPECT_FALSE(memory.Read(pages.end(), &word));
}

TEST(ReadableMemoryTest, NoticesThatAPageWentBetweenTwoWalks) {
  GuardedPages pages(1);
  StackMemory memory;
  memory.MoveTo(pages.start(), false);
  uintptr_t word = 0;
  EXPECT_TRUE(memory.Read(pages.start() + 8, &word));
  ::mprotect(pages.word(pages.start()), GuardedPages::page_bytes(), PROT_NONE);
  memory.MoveTo(pages.start(), false);
  EXPECT_FALSE(memory.Read(pages.start() + 8, &word));
}

// Builds a chain of frame pointers at the end of the pages.
TEST(ReadableMemoryTest, KnowsTheStackOfAnyThread) {
  const auto expect_known = [] {
    const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    StackMemory memory;
    memory.MoveTo(sp, /*guessed=*/false);
    EXPECT_TRUE(memory.Covers(sp + 256));
  };
  expect_known();
  std::thread(expect_known).join();
}

TEST(ReadableMemoryTest, ReadsACopyWithARunOfZerosLeftOut) {
  constexpr uintptr_t kBegin = 0x10000;
  constexpr uintptr_t kWord = sizeof(uintptr_t);
  const uintptr_t words[] = {1, 2, 3};
  StackMemory memory;
  memory.UseCopy(
      kBegin, {.words = words, .bytes = 2 * kWord, .zero_bytes = 3 * kWord, .bytes_after = kWord});
  const uintptr_t expected[] = {1, 2, 0, 0, 0, 3};
  uintptr_t word = 0;
  for (uintptr_t i = 0; i < std::size(expected); ++i) {
    ASSERT_TRUE(memory.Read(kBegin + i * kWord, &word)) << i;
    EXPECT_EQ(word, expected[i]) << i;
  }
  EXPECT_FALSE(memory.Read(kBegin + std::size(expected) * kWord, &word));
  EXPECT_FALSE(memory.Read(kBegin - kWord, &word));
  EXPECT_FALSE(memory.Read(kBegin + 2 * kWord + 1, &word)) << "not aligned";
}

TEST(ReadableMemoryTest, TheExtentOfAStackLeavesOutZerosAlone) {
  const auto expect_whole = [] {
    const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
    const size_t most = OwnStackBytesFrom(sp);
    const StackExtent extent = OwnStackFrom(sp);
    ASSERT_GT(extent.bytes, 0u);
    EXPECT_LE(extent.copied() + extent.zero_bytes, most);
    for (size_t i = 0; i < extent.zero_bytes; i += sizeof(uintptr_t)) {
      ASSERT_EQ(machine::LoadWord(sp + extent.bytes + i), 0u);
    }
  };
  expect_whole();
  std::thread(expect_whole).join();
}

TEST(ReadableMemoryTest, TheFirstThreadsFramesEndAtTheArguments) {
  const auto sp = reinterpret_cast<uintptr_t>(__builtin_frame_address(0));
  const uintptr_t end = EndOfFirstFrames(sp);
  if (end == UINTPTR_MAX) GTEST_SKIP() << "the program has another environment";
  EXPECT_GE(machine::LoadWord(end), 1u);
  const uintptr_t name = machine::LoadWord(end + sizeof(uintptr_t));
  EXPECT_STREQ(reinterpret_cast<const char*>(name), program_invocation_name);
  EXPECT_LE(OwnStackFrom(sp).bytes, end - sp);
}

TEST(BadStackTest, FramePointersEndAtAPageThatIsNotThere) {
  const GuardedPages pages(1);
  const uintptr_t code = pages.start();  // no object is there
  const uintptr_t first = pages.end() - 64;
  const uintptr_t last = pages.end() - 32;
  *pages.word(first) = last;
  *pages.word(first + 8) = code + 1;
  *pages.word(last) = pages.end() + 16;
  *pages.word(last + 8) = code + 2;
  for (UnwindMethod method : {UnwindMethod::kTables, UnwindMethod::kFramePointers}) {
    void* frames[kMost];
    ASSERT_EQ(CaptureWith(MakeRegisters(code, first - 64, first), method, frames), 2);
    EXPECT_EQ(frames[0], pages.word(code + 1));
    EXPECT_EQ(frames[1], pages.word(code + 2));
  }
}

TEST(BadStackTest, FramePointersEndWhereNoCodeCanBe) {
  const GuardedPages pages(1);
  const uintptr_t code = pages.start();
  const uintptr_t first = pages.end() - 64;
  const uintptr_t last = pages.end() - 32;
  *pages.word(first) = last;
  *pages.word(first + 8) = code + 1;
  *pages.word(last) = last + 16;
  for (const uintptr_t no_code : {uintptr_t{50}, pages.end() + 8, uintptr_t{0x2065657266207962}}) {
    *pages.word(last + 8) = no_code;
    void* frames[kMost];
    const Registers registers = MakeRegisters(code, first - 64, first);
    ASSERT_EQ(CaptureWith(registers, UnwindMethod::kFramePointers, frames), 1) << no_code;
    EXPECT_EQ(frames[0], pages.word(code + 1));
  }
}

TEST(BadStackTest, FramePointersThatLeadNowhereEndTheWalk) {
  const GuardedPages pages(2);
  const uintptr_t code = pages.start();
  const uintptr_t record = pages.start() + 4096;
  const uintptr_t bad[] = {record,  // itself
                           record - 64,
                           record + 1,
                           0,
                           8,
                           pages.end(),
                           pages.end() - 8,
                           UINTPTR_MAX - 7,
                           uintptr_t{1} << 63,
                           uintptr_t{1} << 50};
  for (uintptr_t pointer : bad) {
    *pages.word(record) = pointer;
    *pages.word(record + 8) = code + 1;
    void* frames[kMost];
    const Registers registers = MakeRegisters(code, record - 64, record);
    const int count = CaptureWith(registers, UnwindMethod::kFramePointers, frames);
    EXPECT_GE(count, 1) << pointer;
    EXPECT_LE(count, 2) << pointer;
  }
}

// Functions of several objects, and others.
std::vector<uintptr_t> SomeCode(const GuardedPages& pages) {
  return {0,
          1,
          pages.start(),
          pages.end(),
          reinterpret_cast<uintptr_t>(&SetUnwindMethod),
          reinterpret_cast<uintptr_t>(&CaptureCallers),
          reinterpret_cast<uintptr_t>(&::qsort),
          reinterpret_cast<uintptr_t>(&::write),
          reinterpret_cast<uintptr_t>(&pages),
          UINTPTR_MAX,
          uintptr_t{1} << 63};
}

TEST(BadStackTest, AnyRegistersAreHarmless) {
  std::mt19937_64 random(1);
  const GuardedPages pages(4);
  const std::vector<uintptr_t> code = SomeCode(pages);
  uintptr_t local[512];
  const auto local_address = reinterpret_cast<uintptr_t>(local);
  const uintptr_t places[] = {pages.start(),
                              pages.start() + 8192,
                              pages.end() - 64,
                              pages.end(),
                              local_address,
                              local_address + 2048,
                              0,
                              UINTPTR_MAX - 4095};
  const auto any_place = [&] { return places[random() % std::size(places)] + random() % 128 - 32; };
  const auto any_word = [&] {
    return random() % 2 != 0 ? any_place() : code[random() % code.size()] + random() % 200;
  };
  for (int i = 0; i < 20'000; ++i) {
    if (i % 50 == 0) {
      for (uintptr_t& word : local) word = any_word();
      for (uintptr_t at = pages.start(); at < pages.end(); at += 8) *pages.word(at) = any_word();
    }
    ucontext_t context = {};
    auto* words = const_cast<uintptr_t*>(machine::ContextWords(context));
    for (size_t j = 0; j < machine::kContextWords; ++j) words[j] = any_word();
    if (i % 2 == 0) {
      // Aligned, as they mostly are.
      for (size_t j = 0; j < machine::kContextWords; ++j) words[j] &= ~uintptr_t{15};
    }
    SetUnwindMethod(i % 3 == 0 ? UnwindMethod::kFramePointers : UnwindMethod::kTables);
    void* frames[kMost];
    int sizes[kMost];
    EXPECT_LE(CaptureStackFrom(&context, frames, kMost, 0), kMost);
    EXPECT_LE(CaptureInterrupted(&context, {frames, sizes, kMost}, 1), kMost);
  }
  SetUnwindMethod(UnwindMethod::kTables);
}

// A stack of the program's own.
ucontext_t main_context;
ucontext_t other_context;
int coroutine_count = 0;
void* coroutine_frames[kMost];

__attribute__((noinline)) void InCoroutine() {
  coroutine_count = CaptureStack(coroutine_frames, kMost, 0);
}

void RunCoroutine(const GuardedPages& stack, void (*function)() = InCoroutine) {
  ASSERT_EQ(::getcontext(&other_context), 0);
  other_context.uc_stack.ss_sp = stack.word(stack.start());
  other_context.uc_stack.ss_size = stack.end() - stack.start();
  other_context.uc_link = &main_context;
  ::makecontext(&other_context, function, 0);
  ASSERT_EQ(::swapcontext(&main_context, &other_context), 0);
}

TEST(BadStackTest, StacksOfCoroutinesThatComeAndGo) {
  for (size_t i = 0; i < 20; ++i) {
    RunCoroutine(GuardedPages(16 - i % 8));
    EXPECT_GE(coroutine_count, 1);
    EXPECT_LE(coroutine_count, 4);
    void* frames[kMost];
    EXPECT_GT(CaptureStack(frames, kMost, 0), 4) << "back on the thread's own stack";
  }
}

// No other test walks from here.
__attribute__((noinline)) void InAnotherCoroutine() {
  coroutine_count = CaptureStack(coroutine_frames, kMost, 0);
}

// Returns the bytes of stack that a coroutine used in which a stack is walked.
size_t StackOfAWalk() {
  constexpr uintptr_t kPaint = 0x5a5a5a5a5a5a5a5a;
  const GuardedPages stack(8);
  std::fill(stack.word(stack.start()), stack.word(stack.end()), kPaint);
  RunCoroutine(stack, InAnotherCoroutine);
  const uintptr_t* lowest = std::find_if(stack.word(stack.start()), stack.word(stack.end()),
                                         [](uintptr_t word) { return word != kPaint; });
  return stack.end() - reinterpret_cast<uintptr_t>(lowest);
}

TEST(BadStackTest, AWalkNeedsLittleStack) {
  // The first walk executes tables of functions, of which the cache knows nothing yet.
  const size_t first = StackOfAWalk();
  size_t later = first;
  for (int i = 0; i < 3; ++i) later = std::min(later, StackOfAWalk());
  if (!kAddressSanitizer) {
    EXPECT_LE(later, 2560u);
  }
  if (!kAddressSanitizer && !kThreadSanitizer) {
    EXPECT_LE(first, 4096u);
  }
  RecordProperty("first", static_cast<int>(first));
  RecordProperty("later", static_cast<int>(later));
}

// The thread-specific data of a thread that ends.
void CaptureAtEnd(void* count) {
  void* frames[kMost];
  *static_cast<int*>(count) = CaptureStack(frames, kMost, 0);
}

TEST(BadStackTest, ThreadsThatEnd) {
  pthread_key_t key;
  ASSERT_EQ(::pthread_key_create(&key, CaptureAtEnd), 0);
  for (int i = 0; i < 20; ++i) {
    int count = 0;
    std::thread([&] { ::pthread_setspecific(key, &count); }).join();
    EXPECT_GE(count, 1);
  }
  ::pthread_key_delete(key);
}

TEST(CaptureTest, HonoursLimitAndSkip) {
  void* all[kMost];
  const int count = CaptureStack(all, kMost, 0);
  ASSERT_GT(count, 5);
  for (int limit = -1; limit <= count; ++limit) {
    void* frames[kMost + 1];
    std::memset(frames, 0xab, sizeof(frames));
    const int stored = CaptureStack(frames, limit, 1);
    EXPECT_EQ(stored, std::max(0, std::min(limit, count - 1)));
    if (stored > 0) {
      EXPECT_EQ(frames[stored - 1], all[stored]);
    }
    uintptr_t behind = 0;
    std::memcpy(&behind, &frames[std::max(stored, 0)], sizeof(behind));
    EXPECT_EQ(behind, 0xababababababababu) << "nothing is written behind the limit";
  }
  EXPECT_EQ(CaptureStack(all, kMost, 100'000), 0);
  EXPECT_EQ(CaptureStack(all, kMost, INT32_MAX), 0);
}

TEST(CaptureTest, SizesAreThoseOfTheFrames) {
  void* frames[kMost];
  int sizes[kMost];
  const int count = CaptureStackFrames(frames, sizes, kMost, 0);
  ASSERT_GT(count, 5);
  for (int i = 0; i < count - 1; ++i) EXPECT_GT(sizes[i], 0) << i;
}

TEST(CaptureTest, KeepsErrno) {
  std::thread([] {
    errno = 77;
    void* frames[kMost];
    EXPECT_GT(CaptureStack(frames, kMost, 0), 1);
    EXPECT_EQ(errno, 77);
  }).join();
}

TEST(CaptureTest, KnowsGperftoolsNamesOfMethods) {
  EXPECT_EQ(ParseUnwindMethod("generic"), UnwindMethod::kTables);
  EXPECT_EQ(ParseUnwindMethod("libgcc"), UnwindMethod::kTables);
  EXPECT_EQ(ParseUnwindMethod("libunwind"), UnwindMethod::kLibunwind);
  EXPECT_EQ(ParseUnwindMethod("generic_fp"), UnwindMethod::kFramePointers);
  EXPECT_EQ(ParseUnwindMethod("generic_fp_unsafe"), UnwindMethod::kFramePointers);
  EXPECT_EQ(ParseUnwindMethod("instrument"), std::nullopt);
  EXPECT_EQ(ParseUnwindMethod(""), std::nullopt);
}

}  // namespace
}  // namespace tcmalloc::testing
