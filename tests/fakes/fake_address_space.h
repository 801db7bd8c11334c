// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// An address space that exists on paper only: what is mapped where, without any memory.

#ifndef TCMALLOC_TESTS_FAKES_FAKE_ADDRESS_SPACE_H_
#define TCMALLOC_TESTS_FAKES_FAKE_ADDRESS_SPACE_H_

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>

#include "system/system_calls.h"

namespace tcmalloc::testing {

// Stands in for mmap, munmap, madvise, sbrk, prctl and getauxval while it lives; at most one at a
// time. Not thread safe. Addresses that it gives out must not be dereferenced.
class FakeAddressSpace {
 public:
  explicit FakeAddressSpace(size_t page_size = 4096);
  ~FakeAddressSpace();
  FakeAddressSpace(const FakeAddressSpace&) = delete;
  FakeAddressSpace& operator=(const FakeAddressSpace&) = delete;

  // Makes [start, start + bytes) taken by somebody else.
  void Occupy(uintptr_t start, size_t bytes) { mapped_[start] = start + bytes; }
  // Addresses end here, and the kernel chooses downwards from here.
  void set_end(uintptr_t end) { end_ = end; }
  void set_next_choice(uintptr_t end) { next_choice_ = end; }
  void set_break(uintptr_t address) { break_ = address; }
  uintptr_t program_break() const { return break_; }
  // Kernels before 4.17 take the address of MAP_FIXED_NOREPLACE as a hint.
  void set_knows_noreplace(bool knows) { knows_noreplace_ = knows; }
  void set_mmap_fails(bool fails) { mmap_fails_ = fails; }
  void set_munmap_fails(bool fails) { munmap_fails_ = fails; }
  // Runs after each call of sbrk(0): another user of the break.
  void set_after_break_read(std::function<void()> action) { after_break_read_ = std::move(action); }
  // Runs after each call of sbrk that moved the break.
  void set_after_break_move(std::function<void()> action) { after_break_move_ = std::move(action); }

  // Bytes mapped now, those of Occupy included.
  size_t mapped_bytes() const;
  bool IsMapped(uintptr_t address) const;
  int mmap_calls() const { return mmap_calls_; }
  int prctl_calls() const { return prctl_calls_; }

  // The range of the last madvise.
  uintptr_t advised_start() const { return advised_start_; }
  size_t advised_bytes() const { return advised_bytes_; }

 private:
  static void* Mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
  static int Munmap(void* start, size_t bytes);
  static int Madvise(void* start, size_t bytes, int advice);
  static void* Sbrk(intptr_t increment);
  static int Prctl(int option, unsigned long a, unsigned long b, unsigned long c, unsigned long d);
  static unsigned long Getauxval(unsigned long type);

  bool IsFree(uintptr_t start, size_t bytes) const;
  void* Choose(size_t bytes);

  SystemCalls saved_;
  size_t page_size_;
  std::map<uintptr_t, uintptr_t> mapped_;  // start to end
  uintptr_t end_ = uintptr_t{1} << 47;
  uintptr_t next_choice_ = (uintptr_t{1} << 47) - (uintptr_t{1} << 30);
  uintptr_t break_ = 0x555555000000;
  bool knows_noreplace_ = true;
  bool mmap_fails_ = false;
  bool munmap_fails_ = false;
  std::function<void()> after_break_read_;
  std::function<void()> after_break_move_;
  int mmap_calls_ = 0;
  int prctl_calls_ = 0;
  uintptr_t advised_start_ = 0;
  size_t advised_bytes_ = 0;
};

}  // namespace tcmalloc::testing

#endif  // TCMALLOC_TESTS_FAKES_FAKE_ADDRESS_SPACE_H_
