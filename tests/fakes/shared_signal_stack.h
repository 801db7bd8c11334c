// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#ifndef TCMALLOC_TESTS_FAKES_SHARED_SIGNAL_STACK_H_
#define TCMALLOC_TESTS_FAKES_SHARED_SIGNAL_STACK_H_

#include <signal.h>

#include <algorithm>
#include <iterator>

#include "fakes/require.h"

namespace tcmalloc::testing {

// One stack for signals that all threads of the program may have, as those of Varnish do, which
// handle nothing there but the fault that ends the process. Handlers that many threads run at a
// time must leave it alone.
class SharedSignalStack {
 public:
  // Gives it to a thread while this lives. Sanitizers give one of their own to threads, and unmap
  // what they find in its place. Ends the program if the kernel does not take it.
  class Holder {
   public:
    Holder() {
      stack_t stack = {};
      stack.ss_sp = bytes_;
      stack.ss_size = sizeof(bytes_);
      stack_t now = {};
      const bool taken = sigaltstack(&stack, &before_) == 0 && sigaltstack(nullptr, &now) == 0;
      Require(taken && now.ss_sp == bytes_, "the kernel has another stack");
    }
    ~Holder() { sigaltstack(&before_, nullptr); }
    Holder(const Holder&) = delete;
    Holder& operator=(const Holder&) = delete;

   private:
    stack_t before_ = {};
  };

  static void Mark() { std::fill(std::begin(bytes_), std::end(bytes_), kMark); }
  // Returns true if nothing has been written there since Mark.
  static bool IsUntouched() {
    return std::all_of(std::begin(bytes_), std::end(bytes_),
                       [](char byte) { return byte == kMark; });
  }

 private:
  static constexpr char kMark = '\x5a';

  alignas(64) static inline char bytes_[64 << 10];
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_SHARED_SIGNAL_STACK_H_
