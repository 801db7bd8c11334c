// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "unwind/readable_memory.h"

#include <pthread.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "base/bits.h"
#include "system/system_calls.h"

namespace tcmalloc {
namespace {

// Stacks that are larger are not learnt.
constexpr uintptr_t kMostStackBytes = uintptr_t{1} << 30;
// Bounds the system calls of one walk.
constexpr uintptr_t kMostLearntBytes = uintptr_t{1} << 20;

// The page from which on the running thread's own stack was found readable up to its end, or 0. One
// word, so that a signal handler sees it whole. It stays true as long as the thread runs.
constinit thread_local uintptr_t own_stack_low
    __attribute__((tls_model("initial-exec"))) TCMALLOC_INITIALIZED_TLS = 0;
// Added to it where the stack is that of the process's first thread.
constexpr uintptr_t kFirstThread = 1;

// Returns an address at the end of the first thread's stack, where the kernel put random bytes.
uintptr_t FirstStackEnd() {
  static constinit std::atomic<uintptr_t> stored{0};
  uintptr_t end = stored.load(std::memory_order_relaxed);
  if (TCMALLOC_UNLIKELY(end == 0)) {
    end = AlignDown(system_calls.getauxval(AT_RANDOM), sizeof(uintptr_t));
    stored.store(end, std::memory_order_relaxed);
  }
  return end;
}

// Returns where the number of arguments is, which the kernel put below them and they below the
// environment; the highest address if the program has another environment by now.
uintptr_t FindArguments() {
  constexpr uintptr_t kMostArguments = 256;
  constexpr uintptr_t kMostEnvironmentBytes = uintptr_t{64} << 10;
  constexpr uintptr_t kWord = sizeof(uintptr_t);
  const auto environment = reinterpret_cast<uintptr_t>(::environ);
  const uintptr_t distance = FirstStackEnd() - environment;
  if (distance > kMostEnvironmentBytes || distance % kWord != 0) return UINTPTR_MAX;
  if (machine::LoadWord(environment - kWord) != 0) return UINTPTR_MAX;
  for (uintptr_t count = 0; count < kMostArguments; ++count) {
    const uintptr_t at = environment - (count + 2) * kWord;
    if (machine::LoadWord(at) == count) return at;
  }
  return UINTPTR_MAX;
}

// Returns an address at the end of the running thread's stack, if that is not the first thread's:
// libc keeps the thread's descriptor there.
uintptr_t OtherStackEnd() {
  return AlignDown(reinterpret_cast<uintptr_t>(::pthread_self()), sizeof(uintptr_t));
}

// Returns where the running thread's stack begins, behind its guard, if that is not the first
// thread's. libc's descriptor has four words next to each other: its start, its size, and the
// guard's size as it is and as it was asked for. No function tells it without a lock. Returns the
// highest address if they are not found.
uintptr_t OtherStackStart() {
  constexpr uintptr_t kMostDescriptorBytes = 4096;
  constexpr uintptr_t kNotFound = UINTPTR_MAX;
  const auto self = reinterpret_cast<uintptr_t>(::pthread_self());
  uintptr_t words[4] = {};  // the last ones that were read
  uintptr_t page = 0;
  for (uintptr_t at = self; at < self + kMostDescriptorBytes; at += sizeof(uintptr_t)) {
    if (page != AlignDown(at, kProbedPageBytes)) {
      page = AlignDown(at, kProbedPageBytes);
      if (!IsReadable(page)) return kNotFound;
    }
    std::shift_left(words, words + 4, 1);
    words[3] = machine::LoadWord(at);
    const auto [start, bytes, guard, wanted_guard] = words;
    if (start < self && self - start < bytes && bytes < kMostStackBytes && guard < bytes &&
        wanted_guard < bytes) {
      return start + guard;
    }
  }
  return kNotFound;
}

// Finds out if the own stack is readable from `low`, a page's start, up to `end`, and notes it in
// `own_stack_low` with `mark`. Gives up, for this time, before it takes long.
bool LearnOwnStack(uintptr_t low, uintptr_t end, uintptr_t mark) {
  const uintptr_t learnt = own_stack_low - mark;
  const bool extends = learnt > low && learnt < end;
  const uintptr_t stop = extends ? learnt : end;
  if (stop - low > kMostLearntBytes) return false;
  if ((::gettid() == ::getpid()) != (mark == kFirstThread)) return false;
  // A program may have other stacks directly below, with no guard between them, and unmap them.
  if (mark != kFirstThread && low < OtherStackStart()) return false;
  if (!IsReadable(low, stop - low)) return false;
  own_stack_low = low + mark;
  return true;
}

// Returns the end of the own stack, if it is known to be readable from `low`, a page's start; 0
// where `low` may belong to another stack.
uintptr_t OwnStackEnd(uintptr_t low) {
  const uintptr_t first_end = FirstStackEnd();
  const uintptr_t other_end = OtherStackEnd();
  // The next one above. The kernel puts the first thread's stack above everything else, an emulator
  // anywhere.
  const bool first = first_end - low < other_end - low;
  const uintptr_t end = first ? first_end : other_end;
  if (end - low >= kMostStackBytes) return 0;
  const uintptr_t mark = first ? kFirstThread : 0;
  const uintptr_t learnt = own_stack_low;
  const bool known = learnt != 0 && learnt % 2 == mark && learnt - mark <= low;
  return known || LearnOwnStack(low, end, mark) ? end : 0;
}

}  // namespace

uintptr_t EndOfFirstFrames(uintptr_t sp) {
  static constinit std::atomic<uintptr_t> stored{0};
  uintptr_t arguments = stored.load(std::memory_order_relaxed);
  if (TCMALLOC_UNLIKELY(arguments == 0)) {
    arguments = FindArguments();
    stored.store(arguments, std::memory_order_relaxed);
  }
  return arguments - sp < kMostStackBytes ? arguments : UINTPTR_MAX;
}

bool IsReadable(uintptr_t address) {
  // The kernel reads the mask before it looks what shall be done with it, and refuses that.
  constexpr int kNothing = -1;
  const int saved_errno = errno;
  const int result =
      system_calls.rt_sigprocmask(kNothing, reinterpret_cast<const uint64_t*>(address), nullptr);
  const bool readable = result != 0 && errno == EINVAL;
  errno = saved_errno;
  return readable;
}

bool IsReadable(uintptr_t address, size_t bytes) {
  const uintptr_t end = address + bytes;
  if (end < address) return false;
  for (uintptr_t page = AlignDown(address, kProbedPageBytes); page < end;
       page += kProbedPageBytes) {
    if (!IsReadable(page)) return false;
  }
  return true;
}

bool CopyIfReadable(uintptr_t address, void* to, size_t bytes) {
  const int saved_errno = errno;
  const iovec local = {.iov_base = to, .iov_len = bytes};
  const iovec remote = {.iov_base = reinterpret_cast<void*>(address), .iov_len = bytes};
  const long copied =
      ::syscall(SYS_process_vm_readv, ::syscall(SYS_getpid), &local, 1, &remote, 1, 0);
  const bool refused = copied < 0 && errno != EFAULT;
  errno = saved_errno;
  if (TCMALLOC_LIKELY(!refused)) return copied == static_cast<long>(bytes);
  // A filter of system calls, or an emulator without this one.
  if (!IsReadable(address, bytes)) return false;
  std::memcpy(to, reinterpret_cast<const void*>(address), bytes);
  return true;
}

void StackMemory::UseCopy(uintptr_t sp, const CopiedWords& copy) {
  is_copy_ = true;
  low_ = sp;
  readable_ = copy.bytes;
  to_copy_ = reinterpret_cast<uintptr_t>(copy.words) - sp;
  zero_bytes_ = copy.zero_bytes;
  bytes_after_ = copy.bytes_after;
}

void StackMemory::MoveTo(uintptr_t sp, bool guessed) {
  if (TCMALLOC_UNLIKELY(is_copy_)) return;
  guessed_ = guessed;
  low_ = sp - std::min(sp, machine::kRedZone);
  readable_ = 0;
  probed_page_ = kNoPage;
  const uintptr_t end = OwnStackEnd(AlignDown(low_, kProbedPageBytes));
  if (end != 0) readable_ = end - low_;
}

// Reads a word of the run of zeros, or of those behind it. Requires a multiple of a word from low_
// on.
bool StackMemory::ReadCopy(uintptr_t address, uintptr_t* word) const {
  const uintptr_t behind = address - low_ - readable_;
  if (behind >= zero_bytes_ + bytes_after_) return false;
  *word = behind < zero_bytes_ ? 0 : machine::LoadWord(address + to_copy_ - zero_bytes_);
  return true;
}

bool StackMemory::ReadSlow(uintptr_t address, uintptr_t* word) {
  if (address < low_ || address % sizeof(*word) != 0) return false;
  if (is_copy_) return ReadCopy(address, word);
  if (guessed_) return CopyIfReadable(address, word, sizeof(*word));
  const uintptr_t page = AlignDown(address, kProbedPageBytes);
  if (page != probed_page_) {
    if (!IsReadable(page)) return false;
    probed_page_ = page;
  }
  *word = machine::LoadWord(address);
  return true;
}

bool StackMemory::Copy(uintptr_t address, void* to, size_t bytes) {
  auto* words = static_cast<uintptr_t*>(to);
  for (size_t i = 0; i < bytes / sizeof(uintptr_t); ++i) {
    if (!Read(address + i * sizeof(uintptr_t), &words[i])) return false;
  }
  return true;
}

}  // namespace tcmalloc
