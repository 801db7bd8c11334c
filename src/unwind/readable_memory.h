// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Reads of memory that may not be there.

#ifndef TCMALLOC_UNWIND_READABLE_MEMORY_H_
#define TCMALLOC_UNWIND_READABLE_MEMORY_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"
#include "unwind/machine.h"

namespace tcmalloc {

// Pages of the kernel are at least as large, so that what is true of one such piece of a page is
// true of the page.
inline constexpr uintptr_t kProbedPageBytes = 4096;

// Returns where the frames of the process's first thread end, if `sp` is within its stack: there
// the kernel put the number of arguments, and behind it all arguments and the environment. Returns
// the highest address elsewhere, or if that is not found.
uintptr_t EndOfFirstFrames(uintptr_t sp);

// Asks the kernel if the word at `address`, a multiple of 8, can be read. One system call, which
// has no effect. Keeps errno.
bool IsReadable(uintptr_t address);
// Asks for all pages of [address, address + bytes).
bool IsReadable(uintptr_t address, size_t bytes);

// Copies bytes that another thread may be unmapping, by a system call. Returns false if they cannot
// be read. Keeps errno.
bool CopyIfReadable(uintptr_t address, void* to, size_t bytes);

// A copy of the words of a stack, from a stack pointer on. One run of zero words may be left out of
// it, because libc keeps room for thread-local variables at the end of a thread's stack.
struct CopiedWords {
  const void* words = nullptr;  // those before the run, followed by those behind it
  size_t bytes = 0;             // before the run; all of them where there is none
  size_t zero_bytes = 0;        // of the run
  size_t bytes_after = 0;       // behind the run
};

// The memory around a stack pointer. Words of it are read at the cost of a comparison where they
// lie in pages that are known to be mapped: those from the stack pointer up to the end of the
// thread's own stack, which stays mapped as long as the thread runs. Other pages are asked for
// each time that a walk comes to them, since whoever owns them may unmap them between two walks.
class StackMemory {
 public:
  StackMemory() = default;

  // Starts over at the stack pointer `sp` of another stack, or of the same one. Addresses that come
  // from guesses may lie in memory that is no stack at all, and that another thread unmaps.
  void MoveTo(uintptr_t sp, bool guessed);

  // Turns to a copy of the words from the stack pointer `sp` on. Nothing else can be read from now
  // on, and MoveTo changes nothing.
  void UseCopy(uintptr_t sp, const CopiedWords& copy);

  // Reads the word at `address`. Returns false if it cannot be read, is not aligned to a word, or
  // lies below the stack pointer and its red zone.
  TCMALLOC_ALWAYS_INLINE bool Read(uintptr_t address, uintptr_t* word) {
    if (TCMALLOC_UNLIKELY(address - low_ >= readable_ || address % sizeof(*word) != 0)) {
      return ReadSlow(address, word);
    }
    *word = machine::LoadWord(address + to_copy_);
    return true;
  }

  // Returns true if all words from the stack pointer up to `end` can be read without a question.
  bool Covers(uintptr_t end) const { return end - low_ <= readable_; }

  // Returns how many bytes from `sp` on can be read without a question.
  size_t BytesFrom(uintptr_t sp) const { return readable_ == 0 ? 0 : low_ + readable_ - sp; }

  // Tells that addresses are guesses from now on.
  void set_guessed() { guessed_ = true; }

  // Copies `bytes` bytes, a multiple of a word.
  bool Copy(uintptr_t address, void* to, size_t bytes);

 private:
  bool ReadSlow(uintptr_t address, uintptr_t* word);
  bool ReadCopy(uintptr_t address, uintptr_t* word) const;

  static constexpr uintptr_t kNoPage = 1;

  uintptr_t low_ = 0;       // the lowest address that is read without a question
  uintptr_t readable_ = 0;  // bytes from there
  uintptr_t to_copy_ = 0;   // from the address of a word to that of its copy
  uintptr_t probed_page_ = kNoPage;
  bool guessed_ = false;
  bool is_copy_ = false;
  // Of a copy, what follows the words that are read without a question.
  size_t zero_bytes_ = 0;
  size_t bytes_after_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_READABLE_MEMORY_H_
