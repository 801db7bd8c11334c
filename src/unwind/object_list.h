// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// A list of loaded objects, for a libc that cannot find them without a lock: glibc before 2.35, and
// musl.

#ifndef TCMALLOC_UNWIND_OBJECT_LIST_H_
#define TCMALLOC_UNWIND_OBJECT_LIST_H_

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace tcmalloc {

// An object of the list.
struct ListedObject {
  uintptr_t start = 0;
  uintptr_t end = 0;
  uintptr_t table = 0;  // its .eh_frame_hdr, or 0
};

// Two copies, of which one is read while the other one is written. Objects that were loaded after
// the last refresh are not found, and one that was unloaded is found until the next: its tables
// have to be read with care.
class ObjectList {
 public:
  constexpr ObjectList() = default;
  ObjectList(const ObjectList&) = delete;
  ObjectList& operator=(const ObjectList&) = delete;

  // Asks libc for the objects. Takes libc's lock and may wait for a thread that loads a library:
  // not to be called inside malloc, in a signal handler or with a lock held. Does nothing while
  // another thread refreshes.
  void Refresh();

  // Finds the object that `address` lies in. May be called anywhere.
  bool Find(uintptr_t address, ListedObject* object) const;

 private:
  static constexpr size_t kMost = 512;

  // Relaxed words, because a reader may look at a copy that is being written. It notices that by
  // the version and looks again.
  struct Place {
    std::atomic<uintptr_t> start{0};
    std::atomic<uintptr_t> end{0};
    std::atomic<uintptr_t> table{0};
  };
  struct Copy {
    std::atomic<size_t> count{0};
    Place places[kMost];
  };
  class Writer;

  bool FindIn(const Copy& copy, uintptr_t address, ListedObject* object) const;

  std::atomic<uint64_t> version_{0};  // its last bit tells which copy is read
  std::atomic<bool> refreshing_{false};
  Copy copies_[2];
};

// The list of this process.
extern constinit ObjectList object_list;

// Refreshes the list where libc makes it necessary, and does nothing elsewhere. The same rules.
void RefreshLoadedObjects();

// Tests: walks by the list even if libc can do without it.
void SetUsesObjectList(bool uses);
bool UsesObjectList();

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_OBJECT_LIST_H_
