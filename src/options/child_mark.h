// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// gperftools' mark of names of profiles that a parent has taken.

#ifndef TCMALLOC_OPTIONS_CHILD_MARK_H_
#define TCMALLOC_OPTIONS_CHILD_MARK_H_

namespace tcmalloc {

// Clears the mark of a name that comes from the environment. Returns true if it had one: the name
// is that of the parent's profile, and the process appends its number. A process under gperftools
// sets the highest bit of the first byte in its own environment, which programs that it starts
// inherit. A name that has such a byte of its own cannot be told apart, and is read as there.
inline bool ClearChildMark(char* name) {
  constexpr unsigned kMark = 0x80;
  const auto first = static_cast<unsigned char>(name[0]);
  name[0] = static_cast<char>(first & ~kMark);
  return (first & kMark) != 0;
}

}  // namespace tcmalloc

#endif  // TCMALLOC_OPTIONS_CHILD_MARK_H_
