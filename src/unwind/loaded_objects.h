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
  // True for a program without .eh_frame_hdr, whose tables are .eh_frame alone.
  bool has_program_frames = false;
  // Differs between two objects that are mapped to the same addresses at different times: it is
  // computed from where they lie, from their build id and from parts of their tables.
  uint64_t identity = 0;
  // IsStillLoaded compares the following.
  const void* descriptor = nullptr;        // libc's
  uintptr_t note = 0;                      // where its build id is; 0 if that is not known
  static constexpr size_t kNoteWords = 4;  // of a build id, as much as any linker writes
  uint64_t note_words[kNoteWords] = {};    // what was there
  bool is_permanent = false;               // the program, libc or this library itself
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

// Returns up to where bytes behind `address`, which ReadTable has read, can be read in place: no
// further than the end of the page. 0 for objects that may go meanwhile.
uintptr_t EndInPlace(const LoadedObject& object, uintptr_t address);

// Returns true if the object that was found as `object` is still where `address` lies, in which a
// function of this thread runs. Costs a search by libc and a comparison of the build id, and a
// second look at all that makes up its identity if it has none.
bool IsStillLoaded(const LoadedObject& object, uintptr_t address);

// Objects that earlier walks met. They may be gone; ObjectsOfWalk looks again.
struct KnownObjects {
  static constexpr size_t kMost = 8;

  LoadedObject objects[kMost];
  uint32_t next = 0;       // the one that makes room
  bool lost_some = false;  // an object that was there has made room, or was found gone
};

// The objects of one walk, which keeps them in a KnownObjects for the next one. Each is looked for,
// or looked at again, once.
class ObjectsOfWalk {
 public:
  explicit ObjectsOfWalk(KnownObjects& known) : known_(known) {}
  ObjectsOfWalk(const ObjectsOfWalk&) = delete;
  ObjectsOfWalk& operator=(const ObjectsOfWalk&) = delete;

  // Returns the object of `address`, null if there is none. The pointer is valid until the next
  // call.
  TCMALLOC_ALWAYS_INLINE const LoadedObject* Find(uintptr_t address, bool runs) {
    if (TCMALLOC_LIKELY(last_->Contains(address))) return last_;
    return FindOther(address, runs);
  }

  // Returns the bit of the object that Find returned last; 0 if the next walk cannot have it.
  uint32_t bit_of_last() const {
    return last_ == &unvouched_ ? 0 : uint32_t{1} << (last_ - known_.objects);
  }

  // Returns the bits of the objects that this walk knows to be there.
  uint32_t valid() const { return valid_; }
  // Returns true if the object with that bit is there. A function of it runs in this thread at
  // `address`.
  bool Validate(uint32_t bit, uintptr_t address);

 private:
  const LoadedObject* FindOther(uintptr_t address, bool runs);
  LoadedObject& MakeRoom();

  KnownObjects& known_;
  uint32_t valid_ = 0;      // bits of those that this walk has seen to be there
  LoadedObject unvouched_;  // one that may go while it is looked at; at first, none
  const LoadedObject* last_ = &unvouched_;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_UNWIND_LOADED_OBJECTS_H_
