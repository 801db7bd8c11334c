// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Tells the addresses of the shared library, or program, that this code is a part of.

#ifndef TCMALLOC_SYSTEM_OWN_OBJECT_H_
#define TCMALLOC_SYSTEM_OWN_OBJECT_H_

// The linker's names for the first byte of this object and the one behind its last.
extern "C" {
extern const char __ehdr_start[] __attribute__((weak, visibility("hidden")));
extern const char _end[] __attribute__((weak, visibility("hidden")));
}

namespace tcmalloc {

// Returns false also where the linker gave no names.
inline bool IsInOwnObject(const void* address) {
  return address >= static_cast<const void*>(__ehdr_start) &&
         address < static_cast<const void*>(_end);
}

}  // namespace tcmalloc

#endif  // TCMALLOC_SYSTEM_OWN_OBJECT_H_
