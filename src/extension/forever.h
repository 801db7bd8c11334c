// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Objects with virtual destructors that are never destroyed.

#ifndef TCMALLOC_EXTENSION_FOREVER_H_
#define TCMALLOC_EXTENSION_FOREVER_H_

namespace tcmalloc {

// For constants: usable before the first constructor and after the last destructor. The other
// member makes the union a literal type.
template <typename T>
union Forever {
  constexpr Forever() : value() {}
  constexpr ~Forever() {}

  char unused;
  T value;
};

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_FOREVER_H_
