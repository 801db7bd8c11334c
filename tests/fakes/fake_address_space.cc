// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "fakes/fake_address_space.h"

#include <sys/auxv.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/bits.h"
#include "base/check.h"

namespace tcmalloc::testing {
namespace {

FakeAddressSpace* current = nullptr;

uintptr_t ToAddress(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer); }
void* ToPointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

FakeAddressSpace::FakeAddressSpace(size_t page_size) : saved_(system_calls), page_size_(page_size) {
  TCMALLOC_CHECK(current == nullptr);
  current = this;
  system_calls.mmap = Mmap;
  system_calls.munmap = Munmap;
  system_calls.madvise = Madvise;
  system_calls.process_madvise = [](int, const iovec*, size_t, int, unsigned) -> ssize_t {
    errno = ENOSYS;
    return -1;
  };
  system_calls.sbrk = Sbrk;
  system_calls.prctl = Prctl;
  system_calls.getauxval = Getauxval;
}

FakeAddressSpace::~FakeAddressSpace() {
  system_calls = saved_;
  current = nullptr;
}

size_t FakeAddressSpace::mapped_bytes() const {
  size_t sum = 0;
  for (const auto& [start, end] : mapped_) sum += end - start;
  return sum;
}

bool FakeAddressSpace::IsMapped(uintptr_t address) const { return !IsFree(address, 1); }

bool FakeAddressSpace::IsFree(uintptr_t start, size_t bytes) const {
  auto next = mapped_.lower_bound(start + bytes);
  return next == mapped_.begin() || std::prev(next)->second <= start;
}

void* FakeAddressSpace::Choose(size_t bytes) {
  uintptr_t start = next_choice_ - bytes;
  while (start < end_ && !IsFree(start, bytes)) start -= page_size_;
  if (start >= end_) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  mapped_[start] = start + bytes;
  next_choice_ = start;
  return ToPointer(start);
}

void* FakeAddressSpace::Mmap(void* address, size_t bytes, int, int flags, int, off_t) {
  ++current->mmap_calls_;
  const uintptr_t start = ToAddress(address);
  TCMALLOC_CHECK(IsAligned(start, current->page_size_));
  TCMALLOC_CHECK(IsAligned(bytes, current->page_size_) && bytes != 0);
  if (current->mmap_fails_) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  const bool fixed = (flags & MAP_FIXED_NOREPLACE) != 0 && current->knows_noreplace_;
  if (start == 0) return current->Choose(bytes);
  const bool exists = start + bytes <= current->end_;
  const bool free = exists && current->IsFree(start, bytes);
  if (!free && !fixed) return current->Choose(bytes);
  if (!free) {
    errno = exists ? EEXIST : ENOMEM;
    return MAP_FAILED;
  }
  current->mapped_[start] = start + bytes;
  return address;
}

int FakeAddressSpace::Munmap(void* pointer, size_t bytes) {
  const uintptr_t start = ToAddress(pointer);
  const uintptr_t end = start + bytes;
  TCMALLOC_CHECK(IsAligned(start, current->page_size_));
  TCMALLOC_CHECK(IsAligned(bytes, current->page_size_) && bytes != 0);
  if (current->munmap_fails_) {
    errno = ENOMEM;
    return -1;
  }
  auto& mapped = current->mapped_;
  auto it = mapped.upper_bound(start);
  if (it != mapped.begin()) --it;
  while (it != mapped.end() && it->first < end) {
    const auto [first, last] = *it;
    if (last <= start) {
      ++it;
      continue;
    }
    it = mapped.erase(it);
    if (first < start) mapped[first] = start;
    if (last > end) mapped[end] = last;
  }
  return 0;
}

int FakeAddressSpace::Madvise(void* start, size_t bytes, int) {
  current->advised_start_ = ToAddress(start);
  current->advised_bytes_ = bytes;
  return 0;
}

void* FakeAddressSpace::Sbrk(intptr_t increment) {
  const uintptr_t old = current->break_;
  current->break_ += static_cast<uintptr_t>(increment);
  const auto& action = increment == 0 ? current->after_break_read_ : current->after_break_move_;
  if (action) action();
  return ToPointer(old);
}

int FakeAddressSpace::Prctl(int, unsigned long, unsigned long, unsigned long, unsigned long) {
  ++current->prctl_calls_;
  errno = EINVAL;
  return -1;
}

unsigned long FakeAddressSpace::Getauxval(unsigned long type) {
  return type == AT_PAGESZ ? current->page_size_ : real_system_calls.getauxval(type);
}

}  // namespace tcmalloc::testing
