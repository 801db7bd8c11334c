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
// others. For a copy of the process, in which nobody changes them, and for a filter that refuses
// get_robust_list. Knows nothing of glibc's private layout but that a descriptor has a link of the
// list and, behind it, the number of the thread.
class ThreadList {
 public:
  // `own` is the number of the thread whose copy this is.
  ThreadList(pid_t own, const MemoryMap& memory);

  // Returns the thread pointer of a thread, or 0 if it is not found.
  uintptr_t Find(pid_t thread) const;

 private:
  // Looks from one link on until the list closes. Stores the link that belongs to no thread, which
  // is the list's head.
  uintptr_t FindFrom(uintptr_t link, pid_t thread, uintptr_t* head) const;
  // Returns true if the links at an address and at the one it leads to lead to each other.
  bool IsLink(uintptr_t address) const;
  pid_t NumberAt(uintptr_t link) const;

  const MemoryMap& memory_;
  uintptr_t own_link_ = 0;  // 0 if it is not found
  uintptr_t distance_ = 0;  // from a thread pointer to the link
};

}  // namespace tcmalloc

#endif  // TCMALLOC_LEAK_CHECK_THREAD_LIST_H_
