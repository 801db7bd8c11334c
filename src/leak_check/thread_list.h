// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Finds threads without the kernel's help.

#ifndef TCMALLOC_LEAK_CHECK_THREAD_LIST_H_
#define TCMALLOC_LEAK_CHECK_THREAD_LIST_H_

#include <sys/types.h>

#include <cstddef>
#include <cstdint>

#include "leak_check/memory_map.h"

namespace tcmalloc {

// glibc's lists of the descriptors of threads: one of those whose stacks it made, and one of the
// others. For a copy of the process, in which nobody changes them: for a filter that refuses
// get_robust_list, and for threads that started after they were listed. Knows nothing of glibc's
// private layout but that a descriptor has a link of the list and, behind it, the number of the
// thread.
class ThreadList {
 public:
  // The number and the thread pointer of the thread whose copy this is.
  ThreadList(pid_t own, uintptr_t own_pointer, const MemoryMap& memory);

  // Calls visit(number, thread_pointer) for each thread that has not ended.
  template <typename Visit>
  void ForEach(Visit visit) const {
    if (own_link_ == 0) return;
    // The heads of the two lists lie side by side, and one of them is on this one.
    const uintptr_t head = ForEachOfList(own_link_, visit);
    if (head == 0) return;
    ForEachOfList(head - kLinkBytes, visit);
    ForEachOfList(head + kLinkBytes, visit);
  }

  // Returns the thread pointer of a thread, or 0 if it is not found.
  uintptr_t Find(pid_t thread) const {
    uintptr_t found = 0;
    ForEach([&](pid_t number, uintptr_t pointer) {
      if (number == thread) found = pointer;
    });
    return found;
  }

 private:
  enum class Direction : uint8_t { kForward, kBackward };
  static constexpr size_t kLinkBytes = 2 * sizeof(uintptr_t);
  static constexpr size_t kMostThreads = size_t{1} << 16;
  static constexpr pid_t kMostNumber = 1 << 22;  // the kernel gives no greater ones

  // Visits the threads of the list that a link is on. Returns the link that belongs to no thread,
  // which is the list's head, or 0. A thread may have been about to change the list when the copy
  // was made: from the other side everything is reached then.
  template <typename Visit>
  uintptr_t ForEachOfList(uintptr_t link, Visit visit) const {
    uintptr_t head = 0;
    uintptr_t at = link;
    for (size_t i = 0; i < kMostThreads; ++i) {
      VisitAt(at, &head, visit);
      if (!Leads(at, Direction::kForward)) break;
      at = Next(at, Direction::kForward);
      if (at == link) return head;
    }
    at = link;
    for (size_t i = 0; i < kMostThreads && Leads(at, Direction::kBackward); ++i) {
      at = Next(at, Direction::kBackward);
      VisitAt(at, &head, visit);
    }
    return head;
  }
  // A thread that has ended has number 0.
  template <typename Visit>
  void VisitAt(uintptr_t link, uintptr_t* head, Visit visit) const {
    if (!Leads(link, Direction::kForward) && !Leads(link, Direction::kBackward)) return;
    const pid_t number = NumberAt(link);
    if (IsHead(link)) {
      *head = link;
    } else if (number > 0 && number <= kMostNumber) {
      visit(number, link - distance_);
    }
  }
  // Behind a head is an address, the link of another list. Half of it may look like a number.
  bool IsHead(uintptr_t link) const;
  // Returns true if a link may be at an address.
  bool IsPlace(uintptr_t address) const;
  // Returns true if a link leads to another that leads back.
  bool Leads(uintptr_t link, Direction direction) const;
  static uintptr_t Next(uintptr_t link, Direction direction);
  static pid_t NumberAt(uintptr_t link);

  const MemoryMap& memory_;
  uintptr_t own_link_ = 0;  // 0 if it is not found
  uintptr_t distance_ = 0;  // from a thread pointer to the link
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_THREAD_LIST_H_
