// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A class window over all addresses of the process, whatever a sanitizer leaves of them.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_WINDOW_H_
#define TCMALLOC_TESTS_FAKES_FAKE_WINDOW_H_

#include <sys/mman.h>

#include <cstddef>
#include <cstdint>

#include "pages/page_types.h"

namespace tcmalloc::testing {

// Only the entries that are touched take memory.
class FakeWindow {
 public:
  // Stacks and mappings lie below this, without the opt-in extensions of the address space.
  static constexpr uintptr_t kEndOfUserSpace = uintptr_t{1} << 47;

  FakeWindow()
      : table_(::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) {}
  ~FakeWindow() { ::munmap(table_, kBytes); }
  FakeWindow(const FakeWindow&) = delete;
  FakeWindow& operator=(const FakeWindow&) = delete;

  // For tests that come one after another and leave nothing in it, because to map one takes the
  // emulator half a second.
  static FakeWindow& OfAllTests() {
    static FakeWindow window;
    return window;
  }

  uint8_t* table() const { return static_cast<uint8_t*>(table_); }

 private:
  static constexpr size_t kBytes = kEndOfUserSpace >> kPageShift;

  void* table_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_WINDOW_H_
