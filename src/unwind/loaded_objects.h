// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Programs and shared libraries that are mapped, and reads of their unwind tables.

#ifndef TCMALLOC_UNWIND_LOADED_OBJECTS_H_
#define TCMALLOC_UNWIND_LOADED_OBJECTS_H_

#include <cstddef>
#include <cstdint>

#include "base/attributes.h"

namespace tcmalloc {

// A program or library with code in [start, end).
struct LoadedObject {
  uintptr_t start = 0;
  uintptr_t end = 0;
  // Where its unwind tables may be, and maybe more of it. For a library this is all of it; of a
  // program that is mapped in pieces, it is the one with .eh_frame_hdr.
  uintptr_t tables_start = 0;
  uintptr_t tables_end = 0;
  uintptr_t table = 0;  // its .eh_frame_hdr; 0 if it has none
  // Differs between two objects that are mapped to the same addresses at different times: it is
  // computed from where they lie, from their build id and from parts of their tables.
  uint64_t identity = 0;
  // True if it cannot go while it is looked at, because a function of it runs in this thread. The
  // tables of others are copied by system calls.
  bool stays = false;

  bool Contains(uintptr_t address) const { return address - start < end - start; }
};

// Finds the object that `address` lies in. `runs` says that the function there certainly runs in
// this thread. Takes no lock, allocates nothing, and may be called in a signal handler. An object
// that another thread is loading or unloading may be found or not.
bool FindLoadedObject(uintptr_t address, bool runs, LoadedObject* object);

// Copies bytes from where the tables of `object` may be. Returns false if they lie elsewhere or
// cannot be read. A page that was found readable is remembered for as long as an object of this
// identity is there.
bool ReadTable(const LoadedObject& object, uintptr_t address, void* to, size_t bytes);

// The objects that one walk has met, so that each is looked for once.
class ObjectsOfWalk {
 public:
  // Returns the object of `address`, null if there is none. The pointer is valid until the next
  // call.
  TCMALLOC_ALWAYS_INLINE const LoadedObject* Find(uintptr_t address, bool runs) {
    if (TCMALLOC_LIKELY(objects_[last_].Contains(address))) return &objects_[last_];
    return FindOther(address, runs);
  }

 private:
  const LoadedObject* FindOther(uintptr_t address, bool runs);

  static constexpr size_t kMost = 4;
  LoadedObject objects_[kMost];
  size_t last_ = 0;
  size_t next_ = 0;  // the one that makes room
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_LOADED_OBJECTS_H_
