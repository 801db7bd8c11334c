// Copyright the TCMalloc authors. SPDX-License-Identifier: Apache-2.0
//
// Numbers about the allocator by name, as in gperftools and google/tcmalloc.

#ifndef TCMALLOC_EXTENSION_PROPERTIES_H_
#define TCMALLOC_EXTENSION_PROPERTIES_H_

#include <cstdint>
#include <span>
#include <string_view>

namespace tcmalloc {

class Moment;

struct Property {
  std::string_view name;
  uint64_t (*get)(Moment& moment);
  void (*set)(uint64_t value);  // null: read only
};

// Returns all of them. The functions take locks of the heap: they are called inside a slow path
// that is not reentrant.
std::span<const Property> Properties();

// Returns the meaning of a property, for the documentation.
std::string_view MeaningOf(const Property& property);

// Returns null if there is no property of this name.
const Property* FindProperty(std::string_view name);

// Read and write a property, or a field behind kFieldPrefix. Return false, with nothing done, if
// there is none of this name, or if it is read only. Called inside a slow path that is not
// reentrant.
bool GetProperty(std::string_view name, uint64_t* value);
bool SetProperty(std::string_view name, uint64_t value);

}  // namespace tcmalloc

#endif  // TCMALLOC_EXTENSION_PROPERTIES_H_
