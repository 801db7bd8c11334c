// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "stress/signals/head_windows.h"

#include <bit>
#include <cstdlib>

#include "stress/signals/extension.h"

namespace tcmalloc::testing {
namespace {

// As pages/free_link.h has it.
uint64_t ReferenceTo(uintptr_t block) { return std::rotr(uint64_t{block} + 4, 3); }

uintptr_t Allocate(size_t size) { return reinterpret_cast<uintptr_t>(std::malloc(size)); }
void Free(uintptr_t block) { std::free(reinterpret_cast<void*>(block)); }
uint64_t FirstWordOf(uintptr_t block) { return *reinterpret_cast<const volatile uint64_t*>(block); }

}  // namespace

void HeadWindows::LearnEnd() {
  path_length_ = 0;
  Extension::ReleaseFreeMemory();
  const uintptr_t only = Allocate(kSizes[0]);
  Free(only);
  end_link_ = FirstWordOf(only);
}

void HeadWindows::Learn(size_t i) {
  for (size_t k = 0; k < kSizes.size(); ++k) {
    List& list = boundaries_[i].lists[k];
    list.first = Allocate(kSizes[k]);
    list.second = Allocate(kSizes[k]);
    Free(list.second);
    Free(list.first);
    list.link = FirstWordOf(list.first);
  }
}

void HeadWindows::Look(size_t i) {
  for (size_t k = 0; k < kSizes.size(); ++k) {
    const uintptr_t block = Allocate(kSizes[k]);
    boundaries_[i].lists[k].now = block;
    Free(block);
  }
  boundaries_[i].registers = Stepper::last_registers();
}

void HeadWindows::NotePath() {
  const uint64_t length = Stepper::boundaries();
  if (path_length_ != 0 && length >= path_length_) return;
  path_length_ = length;
  for (size_t i = 0; i < path_.size(); ++i) path_[i] = Stepper::address(i);
}

// Before boundary 0 no instruction of the allocator has run. No head and no link is zero.
bool HeadWindows::IsNewInRegister(size_t i, uint64_t word) const {
  if (i == 0 || word == 0) return false;
  const Stepper::Registers& before = boundaries_[i - 1].registers;
  const Stepper::Registers& now = boundaries_[i].registers;
  for (size_t r = 0; r < now.size(); ++r) {
    if (now[r] == word && before[r] != word) return true;
  }
  return false;
}

// The reference to the second block is in a register from before the head of the first was written.
bool HeadWindows::IsRead(size_t i, size_t list) const {
  const List& now = boundaries_[i].lists[list];
  if (now.first == 0) return IsNewInRegister(i, end_link_);
  if (now.now == now.first) return IsNewInRegister(i, ReferenceTo(now.first));
  return IsNewInRegister(i, now.link) ||
         (now.now == now.second && IsNewInRegister(i, ReferenceTo(now.second)));
}

bool HeadWindows::IsWritten(size_t i, size_t list) const {
  if (i == 0) return false;
  const List& now = boundaries_[i].lists[list];
  const List& before = boundaries_[i - 1].lists[list];
  return (now.now == now.first) != (before.now == before.first);
}

bool HeadWindows::Contain(size_t i) const {
  for (size_t list = 0; list < kSizes.size(); ++list) {
    bool inside = false;
    for (size_t j = 0; j <= i; ++j) inside = (inside && !IsWritten(j, list)) || IsRead(j, list);
    if (inside) return true;
  }
  return false;
}

}  // namespace tcmalloc::testing
