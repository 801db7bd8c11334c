// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Holds an object with a virtual destructor without ever destroying it.

#ifndef TCMALLOC_EXTENSION_NEVER_DESTROYED_H_
#define TCMALLOC_EXTENSION_NEVER_DESTROYED_H_

namespace tcmalloc {

// A constant usable before the first constructor and after the last destructor. The other member
// makes the union a literal type.
template <typename T>
union NeverDestroyed {
  constexpr NeverDestroyed() : value() {}
  constexpr ~NeverDestroyed() {}

  char unused;
  T value;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_NEVER_DESTROYED_H_
