// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Memory for writers of profiles, which must not change the heap that they describe.

#ifndef TCMALLOC_PROFILE_FORMAT_SCRATCH_H_
#define TCMALLOC_PROFILE_FORMAT_SCRATCH_H_

#include <sys/mman.h>

#include <cerrno>
#include <cstddef>

#include "system/system_calls.h"

namespace tcmalloc {

// An array of zero bytes in pages from the system, which begin as valid values of T. Keeps errno.
template <typename T>
class Scratch {
 public:
  Scratch() = default;
  explicit Scratch(size_t count) {
    const int saved_errno = errno;
    void* memory = system_calls.mmap(nullptr, count * sizeof(T), PROT_READ | PROT_WRITE,
                                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    errno = saved_errno;
    if (memory == MAP_FAILED) return;
    elements_ = static_cast<T*>(memory);
    count_ = count;
  }
  Scratch(Scratch&& other) noexcept { Swap(other); }
  Scratch& operator=(Scratch&& other) noexcept {
    Swap(other);
    return *this;
  }
  ~Scratch() {
    if (elements_ != nullptr) system_calls.munmap(elements_, count_ * sizeof(T));
  }

  // Null, and of size 0, if no memory could be had.
  T* data() const { return elements_; }
  size_t size() const { return count_; }
  T& operator[](size_t index) const { return elements_[index]; }

 private:
  void Swap(Scratch& other) {
    T* elements = elements_;
    const size_t count = count_;
    elements_ = other.elements_;
    count_ = other.count_;
    other.elements_ = elements;
    other.count_ = count;
  }

  T* elements_ = nullptr;
  size_t count_ = 0;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_PROFILE_FORMAT_SCRATCH_H_
