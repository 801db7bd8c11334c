// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0

#include "leak_check/thread_list.h"

#include <algorithm>

#include "leak_check/thread_words.h"

namespace tcmalloc {

ThreadList::ThreadList(pid_t own, uintptr_t own_pointer, const MemoryMap& memory)
    : memory_(memory) {
  const MappedRange* mapping = memory.Find(own_pointer);
  if (mapping == nullptr) return;
  const Range range =
      Range{own_pointer - kDescriptorBytes, own_pointer + kDescriptorBytes}.Within(mapping->range);
  for (uintptr_t at = range.begin; at + kLinkBytes + sizeof(own) <= range.end;
       at += sizeof(uintptr_t)) {
    if (NumberAt(at) != own) continue;
    if (!Leads(at, Direction::kForward) && !Leads(at, Direction::kBackward)) continue;
    own_link_ = at;
    distance_ = at - own_pointer;
    return;
  }
}

bool ThreadList::IsPlace(uintptr_t address) const {
  const MappedRange* mapping = memory_.Find(address);
  return address % sizeof(uintptr_t) == 0 && mapping != nullptr && mapping->readable &&
         mapping->writable && mapping->range.end - address >= kLinkBytes + sizeof(uintptr_t);
}

bool ThreadList::IsHead(uintptr_t link) const {
  return memory_.Find(LoadWord(link + kLinkBytes)) != nullptr;
}

bool ThreadList::Leads(uintptr_t link, Direction direction) const {
  if (!IsPlace(link)) return false;
  const bool forward = direction == Direction::kForward;
  const uintptr_t next = Next(link, direction);
  return IsPlace(next) && Next(next, forward ? Direction::kBackward : Direction::kForward) == link;
}

uintptr_t ThreadList::Next(uintptr_t link, Direction direction) {
  return LoadWord(direction == Direction::kForward ? link : link + sizeof(uintptr_t));
}

pid_t ThreadList::NumberAt(uintptr_t link) {
  return *reinterpret_cast<const volatile pid_t*>(link + kLinkBytes);
}

}  // namespace tcmalloc
