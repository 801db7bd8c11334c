// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Bytes that end where a page ends that is followed by one that cannot be read.

#ifndef TCMALLOC_TESTS_UNIT_UNWIND_GUARDED_COPY_H_
#define TCMALLOC_TESTS_UNIT_UNWIND_GUARDED_COPY_H_

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>

namespace tcmalloc::testing {

class GuardedCopy {
 public:
  GuardedCopy(const char* bytes, size_t size) : size_(size) {
    const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
    const size_t whole_pages = (size + page - 1) / page * page;
    mapped_ = whole_pages + page;
    memory_ = static_cast<char*>(
        ::mmap(nullptr, mapped_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
    ::mprotect(memory_ + whole_pages, page, PROT_NONE);
    data_ = memory_ + whole_pages - size;
    Copy(bytes, size);
  }
  ~GuardedCopy() { ::munmap(memory_, mapped_); }
  GuardedCopy(const GuardedCopy&) = delete;
  GuardedCopy& operator=(const GuardedCopy&) = delete;

  char* data() { return data_; }
  size_t size() const { return size_; }
  uintptr_t start() const { return reinterpret_cast<uintptr_t>(data_); }

 private:
  // Also what lies between the variables of a program, where sanitizers let nobody read.
  __attribute__((no_sanitize("address"))) void Copy(const volatile char* bytes, size_t size) {
    for (size_t i = 0; i < size; ++i) data_[i] = bytes[i];
  }

  size_t size_;
  size_t mapped_;
  char* memory_;
  char* data_;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_UNIT_UNWIND_GUARDED_COPY_H_
