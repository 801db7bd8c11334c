// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Blocks freed where no lock may be taken.

#ifndef TCMALLOC_THREAD_DEFERRED_FREES_H_
#define TCMALLOC_THREAD_DEFERRED_FREES_H_

#include <atomic>
#include <cstdint>

namespace tcmalloc {

// A stack to which anybody may push at any time. It is only ever emptied as a whole, so that no ABA
// problem arises. Linked through the blocks. Thread safe and async-signal-safe.
class DeferredFrees {
 public:
  constexpr DeferredFrees() = default;

  bool empty() const { return head_.load(std::memory_order_relaxed) == nullptr; }

  void Push(void* block) {
    void* head = head_.load(std::memory_order_relaxed);
    do {
      *static_cast<void**>(block) = head;
      // Release pairs with the acquire in Drain and publishes the link.
    } while (!head_.compare_exchange_weak(head, block, std::memory_order_release,
                                          std::memory_order_relaxed));
  }

  // Forgets the blocks in the child of fork, where a block may have been copied before its link was
  // written.
  void Abandon() { head_.store(nullptr, std::memory_order_relaxed); }

  // Calls f(block) for each block that was pushed; its first word is zero again.
  template <typename F>
  void Drain(F f) {
    // Acquire pairs with the release in Push.
    void* block = head_.exchange(nullptr, std::memory_order_acquire);
    while (block != nullptr) {
      void* next = *static_cast<void**>(block);
      *static_cast<void**>(block) = nullptr;
      f(block);
      block = next;
    }
  }

 private:
  std::atomic<void*> head_{nullptr};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_DEFERRED_FREES_H_
