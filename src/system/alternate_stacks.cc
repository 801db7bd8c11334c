// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "system/alternate_stacks.h"

#include <sys/auxv.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "system/signal_mask.h"
#include "system/system_calls.h"
#include "system/thread_exists.h"

namespace tcmalloc {
namespace {

// The kernel gives threads numbers below 2^22.
constexpr uint64_t kThreadBits = (uint64_t{1} << 22) - 1;
// The bytes that a handler may need beyond the registers that the kernel puts on its stack.
constexpr size_t kMostOfHandler = 4096;

constinit AlternateStacks alternate_stacks;
constinit std::atomic<bool> are_unfit{false};
constinit std::atomic<void (*)()> on_unfit{nullptr};

// Returns where a stack for signals begins, null if it is none.
const void* StartOf(const stack_t& stack) {
  return (stack.ss_flags & SS_DISABLE) == 0 ? stack.ss_sp : nullptr;
}

void NoteUnfit() {
  // Pairs with the load in AlternateStacksAreUnfit: either the function is found here, or whoever
  // gave it finds the stacks unfit.
  if (are_unfit.exchange(true, std::memory_order_seq_cst)) return;
  // Pairs with the store in CallWhenAlternateStacksAreUnfit.
  void (*const f)() = on_unfit.load(std::memory_order_seq_cst);
  if (f != nullptr) f();
}

// Looks at the stack that the running thread has in place of `before`.
void NoteStacks(const stack_t& before) {
  stack_t now = {};
  ::syscall(SYS_sigaltstack, nullptr, &now);
  const void* const start = StartOf(now);
  const bool is_shared = alternate_stacks.Change(system_calls.gettid(), StartOf(before), start);
  const bool is_small =
      start != nullptr && now.ss_size < ::getauxval(AT_MINSIGSTKSZ) + kMostOfHandler;
  if (is_shared || is_small) NoteUnfit();
}

}  // namespace

AlternateStacks::Entry AlternateStacks::EntryOf(pid_t thread, const void* stack) {
  const uint64_t hash = reinterpret_cast<uintptr_t>(stack) * 0x9e3779b97f4a7c15U;
  return {(hash >> 32) % kPlaces, (hash & ~kThreadBits) | static_cast<uint64_t>(thread)};
}

bool AlternateStacks::Change(pid_t thread, const void* before, const void* after) {
  if (before == after) return false;
  if (before != nullptr) {
    const Entry left = EntryOf(thread, before);
    uint64_t held = left.word;
    words_[left.place].compare_exchange_strong(held, 0, std::memory_order_relaxed);
  }
  if (after == nullptr) return false;
  const Entry taken = EntryOf(thread, after);
  const uint64_t held = words_[taken.place].exchange(taken.word, std::memory_order_relaxed);
  // The stack may be in the memory of one whose thread has ended.
  return held != taken.word && (held & ~kThreadBits) == (taken.word & ~kThreadBits) &&
         ThreadExists(static_cast<pid_t>(held & kThreadBits));
}

int SetAlternateStack(const stack_t* stack, stack_t* old) noexcept {
  if (stack == nullptr) return static_cast<int>(::syscall(SYS_sigaltstack, nullptr, old));
  const int saved_errno = errno;
  int error = 0;
  {
    // No signal of the library's comes between what the kernel and what the library is told. The
    // kernel reads and writes the program's memory, which need not be there.
    const SignalsBlocked blocked;
    stack_t before = {};
    ::syscall(SYS_sigaltstack, nullptr, &before);
    if (::syscall(SYS_sigaltstack, stack, old) != 0) error = errno;
    NoteStacks(before);
  }
  errno = error != 0 ? error : saved_errno;
  return error == 0 ? 0 : -1;
}

bool AlternateStacksAreUnfit() noexcept {
  // Pairs with the exchange in NoteUnfit.
  return are_unfit.load(std::memory_order_seq_cst);
}

void CallWhenAlternateStacksAreUnfit(void (*f)()) {
  // Pairs with the load in NoteUnfit.
  on_unfit.store(f, std::memory_order_seq_cst);
}

}  // namespace tcmalloc
