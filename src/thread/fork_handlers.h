// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// fork: the child gets a heap that no vanished thread was changing.

#ifndef TCMALLOC_THREAD_FORK_HANDLERS_H_
#define TCMALLOC_THREAD_FORK_HANDLERS_H_

#include <atomic>

namespace tcmalloc {

// Handlers that close the heap's gate before a fork and open it afterwards. Thread safe.
class ForkHandlers {
 public:
  using Handler = void (*)();

  constexpr ForkHandlers(Handler before, Handler in_parent, Handler in_child)
      : before_(before), in_parent_(in_parent), in_child_(in_child) {}
  ForkHandlers(const ForkHandlers&) = delete;
  ForkHandlers& operator=(const ForkHandlers&) = delete;

  // Registers the handlers once. May allocate, and may be called again after a failure.
  void Register();

 private:
  const Handler before_;
  const Handler in_parent_;
  const Handler in_child_;
  std::atomic<bool> registered_{false};
};

}  // namespace tcmalloc

#endif  // TCMALLOC_THREAD_FORK_HANDLERS_H_
