// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/thread_list.h"

#include <algorithm>

#include "leak_check/thread_stop.h"

namespace tcmalloc {
namespace {

constexpr size_t kLinkBytes = 2 * sizeof(uintptr_t);
// At least as much as libc's descriptor of a thread, which lies behind the thread pointer or, where
// variables do, before it.
constexpr size_t kDescriptorBytes = 4096;
constexpr size_t kMostThreads = size_t{1} << 16;
constexpr pid_t kMostNumber = 1 << 22;  // the kernel gives no greater ones

uintptr_t LoadWord(uintptr_t address) {
  return *reinterpret_cast<const volatile uintptr_t*>(address);
}

}  // namespace

ThreadList::ThreadList(pid_t own, const MemoryMap& memory) : memory_(memory) {
  const uintptr_t pointer = OwnThreadPointer();
  const MappedRange* mapping = memory.Find(pointer);
  if (mapping == nullptr) return;
  const Range range =
      Range{pointer - kDescriptorBytes, pointer + kDescriptorBytes}.Within(mapping->range);
  for (uintptr_t at = range.begin; at + kLinkBytes + sizeof(own) <= range.end;
       at += sizeof(uintptr_t)) {
    if (NumberAt(at) != own || !IsLink(at)) continue;
    own_link_ = at;
    distance_ = at - pointer;
    return;
  }
}

bool ThreadList::IsLink(uintptr_t address) const {
  const MappedRange* mapping = memory_.Find(address);
  if (address % sizeof(uintptr_t) != 0 || mapping == nullptr || !mapping->readable ||
      !mapping->writable || mapping->range.end - address < kLinkBytes + sizeof(uintptr_t)) {
    return false;
  }
  const uintptr_t next = LoadWord(address);
  const MappedRange* other = memory_.Find(next);
  return next % sizeof(uintptr_t) == 0 && other != nullptr && other->readable &&
         other->range.end - next >= kLinkBytes && LoadWord(next + sizeof(uintptr_t)) == address;
}

pid_t ThreadList::NumberAt(uintptr_t link) const {
  return *reinterpret_cast<const volatile pid_t*>(link + kLinkBytes);
}

uintptr_t ThreadList::FindFrom(uintptr_t link, pid_t thread, uintptr_t* head) const {
  uintptr_t at = link;
  for (size_t i = 0; i < kMostThreads && IsLink(at); ++i) {
    const pid_t number = NumberAt(at);
    if (number == thread) return at - distance_;
    // Behind a head is an address. A thread that ends has number 0.
    if (number < 0 || number > kMostNumber) *head = at;
    at = LoadWord(at);
    if (at == link) break;
  }
  return 0;
}

// The heads of the two lists lie side by side.
uintptr_t ThreadList::Find(pid_t thread) const {
  if (own_link_ == 0) return 0;
  uintptr_t head = 0;
  uintptr_t found = FindFrom(own_link_, thread, &head);
  if (head == 0) return found;
  uintptr_t ignored = 0;
  for (const uintptr_t other : {head - kLinkBytes, head + kLinkBytes}) {
    if (found == 0) found = FindFrom(other, thread, &ignored);
  }
  return found;
}

}  // namespace tcmalloc
